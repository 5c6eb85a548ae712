//! What this machine's own pip, npm and git are set to, as they say it themselves.
//!
//! Who runs them or reads their files is the face; here it is only understood. What is not understood is left out.

use std::path::PathBuf;

use egress::http::Url;

use super::sources::{Index, Sources};

impl Sources {
    /// Takes over what `pip config list` says: the index, those beside it, and certificates.
    pub fn take_pip(&mut self, said: &str) {
        let value = |key: &str| {
            // A variable goes before what is said of `pip install`, and that before what is said of all.
            [":env:.", "install.", "global."].into_iter().find_map(|section| {
                let named = said.lines().find_map(|line| {
                    line.trim().strip_prefix(section)?.strip_prefix(key)?.strip_prefix('=')
                });
                named.and_then(unquoted)
            })
        };
        let main = value("index-url").unwrap_or_default();
        let beside = value("extra-index-url").unwrap_or_default();
        let urls = main.split_whitespace().chain(beside.split_whitespace());
        let indexes: Vec<_> = urls.filter_map(web).map(Index::at).collect();
        // Beside the index that pip has by itself there is none to name; that one is not known here.
        if !main.is_empty() && !indexes.is_empty() {
            self.pip = indexes;
        }
        if let Some(certificates) = value("cert").filter(|path| !path.is_empty()) {
            self.certificates = Some(certificates.into());
        }
    }

    /// Takes over the lines of an `.npmrc`: registries, those of scopes, their tokens, and certificates. Of two
    /// lines about the same the later counts. `${NAME}` is one of these variables.
    pub fn take_npmrc(&mut self, text: &str, variable: &dyn Fn(&str) -> Option<String>) {
        let mut tokens: Vec<(String, String)> = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), filled(value.trim().trim_matches('"'), variable));
            if let Some(place) = key.strip_suffix(":_authToken") {
                tokens.push((place.to_owned(), value));
            } else if key == "cafile" {
                self.certificates = Some(PathBuf::from(value));
            } else if let Some(url) = web(&value) {
                match key.strip_suffix(":registry") {
                    Some(scope) => {
                        let scope = scope.trim_start_matches('@').to_owned();
                        self.npm_scopes.retain(|(known, _)| *known != scope);
                        self.npm_scopes.push((scope, Index::at(url)));
                    }
                    None if key == "registry" => self.npm = Some(Index::at(url)),
                    None => {}
                }
            }
        }
        let scoped = self.npm_scopes.iter_mut().map(|(_, index)| index);
        for index in self.npm.iter_mut().chain(scoped) {
            // A token is for what lies below its place.
            let (_, place) = index.plain().as_str().split_once(':').map(owned).unwrap_or_default();
            let place = format!("{}/", place.trim_end_matches('/'));
            let fits = |(of, _): &&(String, String)| {
                place.starts_with(&format!("{}/", of.trim_end_matches('/')))
            };
            let nearest = tokens.iter().filter(fits).max_by_key(|(of, _)| of.len());
            index.token = nearest.map(|(_, token)| token.clone()).filter(|token| !token.is_empty());
        }
    }

    /// Takes over what `git config --get-regexp ^url\..*\.insteadof$` says.
    pub fn take_git(&mut self, said: &str) {
        for line in said.lines() {
            let rest = line.strip_prefix("url.");
            let named = rest.and_then(|rest| rest.split_once(".insteadof "));
            if let Some((instead, begin)) = named.filter(|(instead, _)| web(instead).is_some()) {
                self.git.push((begin.to_owned(), instead.to_owned()));
            }
        }
    }
}

fn owned((one, other): (&str, &str)) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

fn web(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| ["https", "http"].contains(&url.scheme()) && url.has_host())
}

/// A text as Python writes it: in quotes, with backslashes.
fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|letter| ['\'', '"'].contains(letter))?;
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut read = String::new();
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        read.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                't' => '\t',
                other => other,
            },
            plain => plain,
        });
    }
    Some(read)
}

/// A text with its variables filled in; one that is not there stands for nothing.
fn filled(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        read.push_str(before);
        read.push_str(&variable(name.trim_end_matches('?')).unwrap_or_default());
        rest = behind;
    }
    read + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_names_its_indexes_and_a_variable_goes_first() {
        let mut sources = Sources::default();
        sources.take_pip(
            "global.cert='/etc/c.pem'\nglobal.index-url='https://a.test/simple'\n\
             install.index-url='https://name:pa\\'ss@b.test/simple'\n\
             global.extra-index-url='\\nhttps://c.test/simple\\nhttps://d.test/simple'\n",
        );
        let hosts = |sources: &Sources| -> Vec<String> {
            sources.pip.iter().map(|index| index.url.host_str().unwrap().to_owned()).collect()
        };
        assert_eq!(hosts(&sources), ["b.test", "c.test", "d.test"]);
        assert_eq!(sources.certificates, Some("/etc/c.pem".into()));
        sources.take_pip(":env:.index-url='https://e.test/'\nglobal.index-url='https://a.test/'");
        assert_eq!(hosts(&sources), ["e.test"]);
        sources.take_pip("global.timeout='60'\n:env:.find-links='/opt'");
        assert_eq!(hosts(&sources), ["e.test"], "what is not said changes nothing");
    }

    #[test]
    fn npm_names_its_registries_and_whom_a_token_is_for() {
        let mut sources = Sources::default();
        let variable = |name: &str| (name == "NPM_TOKEN").then(|| "t0ken".to_owned());
        let text = "; mine\n//mirror.test/npm/:_authToken=${NPM_TOKEN}\n\
            //mirror.test/:_authToken=other\n//mirror.test/npmx/:_authToken=third\n\
            registry=https://old.test/\nregistry = https://mirror.test/npm\n\
            @acme:registry=https://acme.test/\nfund=false\ncafile=/etc/c.pem\n";
        sources.take_npmrc(text, &variable);
        let index = sources.npm.clone().unwrap();
        assert_eq!(
            (index.url.as_str(), index.token.as_deref()),
            ("https://mirror.test/npm", Some("t0ken"))
        );
        let (scope, index) = &sources.npm_scopes[0];
        assert_eq!((scope.as_str(), &index.token), ("acme", &None), "no other is shown it");
        assert_eq!(sources.certificates, Some("/etc/c.pem".into()));
    }

    #[test]
    fn git_names_what_stands_for_what() {
        let mut sources = Sources::default();
        sources.take_git(
            "url.https://mirror.test/.insteadof https://code.test/\n\
             url.https://near.test/a/.insteadof https://code.test/a/\n\
             url.git@code.test:.insteadof https://code.test/\n",
        );
        let had = |url| sources.repository(url);
        assert_eq!(had("https://code.test/x").as_deref(), Some("https://mirror.test/x"));
        assert_eq!(had("https://code.test/a/x").as_deref(), Some("https://near.test/a/x"));
        assert_eq!(had("https://other.test/x"), None);
    }
}
