//! Texts with `${…}` in them: what they may refer to, and where.

use super::settings::Settings;
use super::warning;
use crate::dialect::mcpb::variable::{Variable, variables};
use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding, Severity};
use crate::json::{Node, Path};
use crate::shape::{clip, suggest};

/// Where a template stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    /// It names the program.
    Command,
    /// It is one argument.
    Argument,
    /// It is the value of a variable.
    Variable,
}

/// Checks how the server is started, on every system.
pub(super) fn check_server(
    document: &Node<'_>,
    settings: &Settings<'_, '_>,
    judge: &mut Judge<'_>,
) {
    let Some(config) = document.at(&["server", "mcp_config"]) else { return };
    let root = Path::ROOT;
    let server = root.key("server");
    let path = server.key("mcp_config");
    let mut templates = Templates { settings, judge };
    templates.launch(config, path);
    let overrides = path.key("platform_overrides");
    for member in config.get("platform_overrides").map_or(&[][..], Node::members) {
        templates.launch(&member.value, overrides.key(&member.key));
    }
}

/// Checks the default of a setting: only what the host knows by itself is filled in there.
pub(super) fn check_default(default: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let mut check = |node: &Node<'_>, path: Path<'_>| {
        for variable in variables(node.as_text().unwrap_or_default()) {
            if matches!(variable, Variable::Host(_)) {
                continue;
            }
            let what = variable.written();
            let message = format!("`{}` is not filled in here, and stays as it is", clip(&what));
            let finding = Finding::new(Code::BadTemplate, path.pointer(), node.span, message);
            judge.push(warning(finding.help(KNOWN)));
        }
    };
    check(default, path);
    for (index, item) in default.items().iter().enumerate() {
        check(item, path.index(index));
    }
}

const KNOWN: &str = "known: `${__dirname}`, `${HOME}`, `${DESKTOP}`, `${DOCUMENTS}`, `${DOWNLOADS}`, `${pathSeparator}`, `${/}`";

struct Templates<'s, 'n, 't, 'f> {
    settings: &'s Settings<'n, 't>,
    judge: &'s mut Judge<'f>,
}

impl Templates<'_, '_, '_, '_> {
    fn launch(&mut self, config: &Node<'_>, path: Path<'_>) {
        if let Some(command) = config.get("command") {
            self.template(command, path.key("command"), Site::Command);
        }
        let args = path.key("args");
        for (index, argument) in config.list_at("args").iter().enumerate() {
            self.template(argument, args.index(index), Site::Argument);
        }
        let env = path.key("env");
        for member in config.get("env").map_or(&[][..], Node::members) {
            self.template(&member.value, env.key(&member.key), Site::Variable);
        }
    }

    fn template(&mut self, node: &Node<'_>, path: Path<'_>, site: Site) {
        let Some(text) = node.as_text().filter(|text| text.contains("${")) else { return };
        for variable in variables(text) {
            let find = |code, message| Finding::new(code, path.pointer(), node.span, message);
            let finding = match variable {
                Variable::Host(_) => continue,
                Variable::Setting(name) => match self.setting(name, text, site) {
                    Some((code, message, help)) => {
                        let finding = find(code, message).help(help);
                        // A text that nothing can be filled into means nothing to any program.
                        if code == Code::UndeclaredInput { finding } else { warning(finding) }
                    }
                    None => continue,
                },
                // It may be meant for a shell, which fills it in itself.
                Variable::Argument(_) | Variable::Unknown(_) => {
                    let what = variable.written();
                    let message = format!("no host fills in `{}`; it stays as it is", clip(&what));
                    warning(find(Code::BadTemplate, message).help(KNOWN))
                }
            };
            self.judge.push(finding);
        }
    }

    /// What is wrong with the use of a setting, and what would mend it.
    fn setting(&mut self, name: &str, text: &str, site: Site) -> Option<(Code, String, String)> {
        let shown = clip(name);
        let Some(setting) = self.settings.get(name) else {
            if self.judge.is_beyond(Severity::Error) {
                return None;
            }
            let message = format!("the setting `{shown}` is not declared in `user_config`");
            let help = match suggest(name, self.settings.names()) {
                Some(near) => format!("did you mean `${{user_config.{near}}}`?"),
                None => format!("declare `{shown}` in `user_config`"),
            };
            return Some((Code::UndeclaredInput, message, help));
        };
        if setting.is_secret && site != Site::Variable {
            let message = format!("`{shown}` is a secret and would be visible to other processes");
            let help = "only the author can mend this: a server can be given it in `env`";
            return Some((Code::SecretInArgv, message, help.to_owned()));
        }
        let is_whole = site == Site::Argument && text.len() == "${user_config.}".len() + name.len();
        if setting.is_multiple && !is_whole {
            let message = format!("`{shown}` may have several values, and there is room for one");
            let help = "several values are filled in where an argument is nothing else";
            return Some((Code::BadTemplate, message, help.to_owned()));
        }
        None
    }
}
