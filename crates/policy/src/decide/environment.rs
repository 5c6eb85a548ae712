//! Variables that change what programs execute, load or connect to.

use crate::policy::Policy;

/// What the names of whole families begin with: loaders, interpreters, and programs that run others.
const PREFIXES: [&str; 16] = [
    "LD_",
    "DYLD_",
    "PYTHON",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "LUA_",
    "OPENSSL_",
    "GIT_",
    "NPM_CONFIG_",
    "PIP_",
    "UV_",
    "BASH_",
    "DOTNET_",
    "MALLOC_",
];

/// Single names.
const NAMES: [&str; 37] = [
    "PATH",
    "HOME",
    "ENV",
    "IFS",
    "SHELL",
    "SHELLOPTS",
    "ZDOTDIR",
    "PS4",
    "PROMPT_COMMAND",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "GCONV_PATH",
    "LOCPATH",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSLKEYLOGFILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESSOPEN",
    "BROWSER",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "TMPDIR",
];

/// Whether a variable may be passed on at all: it steers no programs, or the policy names it.
pub fn may_be_passed(name: &str, policy: &Policy) -> bool {
    !steers_programs(name) || policy.environment.allow.iter().any(|one| one == name)
}

/// Whether a variable changes what programs execute, load or connect to.
pub fn steers_programs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&&*name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with("_PROXY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_validation_warns_of_is_not_passed_on() {
        for name in manifest::dialect::agentcli::DANGEROUS {
            assert!(steers_programs(name), "{name}");
            assert!(steers_programs(&name.to_lowercase()), "{name}");
        }
        for name in ["API_KEY", "LANG", "TZ", "USER", "GITHUB_TOKEN", "PIPELINE_ID"] {
            assert!(!steers_programs(name), "{name}");
        }
    }
}
