//! The `{…}` of a server.json, filled in with what its owner was asked for.

use egress::http::{HeaderMap, Url};
use manifest::dialect::Dialect;

use super::Asked;
use super::mcp::Sink;
use crate::error::{CallError, Kind};
use crate::request::{check_private, header_name, header_value};

impl Asked<'_> {
    /// A text with values in the place of their names. Braces around anything that is not asked for stay as they are.
    pub(super) fn in_braces(&self, template: &str, sink: Sink) -> Result<String, CallError> {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, name, after)) = self.next_in_braces(rest) {
            text += before;
            text += &self.braced(name, sink)?.unwrap_or_default();
            rest = after;
        }
        Ok(text + rest)
    }

    /// The address of a server. A value stays within its segment, so it leads to no other host.
    pub(super) fn address_in_braces(&self, template: &str) -> Result<String, CallError> {
        if self.tool.package.dialect != Dialect::ServerJson {
            return Ok(template.to_owned());
        }
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, name, after)) = self.next_in_braces(rest) {
            let Some(value) = self.braced(name, Sink::Argument)? else {
                let message = format!("its address needs a value for `{name}`");
                return Err(CallError::new(Kind::MissingInput, message).with("name", name));
            };
            if matches!(value.as_str(), "" | "." | "..") {
                let message =
                    format!("the value of `{name}` would lead elsewhere: it is empty, `.` or `..`");
                return Err(CallError::new(Kind::BadInput, message));
            }
            text += before;
            text.extend(value.bytes().map(|byte| {
                let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            }));
            rest = after;
        }
        Ok(text + rest)
    }

    /// The headers of every request; one whose optional value is absent is left out.
    pub(super) fn headers_in_braces(
        &self,
        headers: &[(String, String)],
        url: &Url,
    ) -> Result<HeaderMap, CallError> {
        let mut filled = HeaderMap::new();
        if self.tool.package.dialect != Dialect::ServerJson {
            return Ok(filled);
        }
        for (name, template) in headers {
            let (mut text, mut rest) = (String::new(), template.as_str());
            let (mut is_whole, mut tells_secret) = (true, false);
            while let Some((before, variable, after)) = self.next_in_braces(rest) {
                text += before;
                match self.braced(variable, Sink::Variable)? {
                    Some(value) => text += &value,
                    None => is_whole = false,
                }
                tells_secret |= self.is_secret(variable);
                rest = after;
            }
            text += rest;
            if !is_whole {
                continue;
            }
            if tells_secret {
                check_private(url)?;
            }
            filled.insert(header_name(name)?, header_value(name, &text, tells_secret)?);
        }
        Ok(filled)
    }

    /// What stands before the next value that is asked for, its name, and what stands after it.
    fn next_in_braces<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        let mut from = 0;
        loop {
            let start = from + text[from..].find('{')?;
            let end = start + text[start..].find('}')?;
            let name = &text[start + 1..end];
            if self.is_asked_for(name) {
                return Some((&text[..start], name, &text[end + 1..]));
            }
            from = start + 1;
        }
    }

    /// Whether the owner is asked for something of this name.
    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        self.tool.package.inputs.iter().any(|input| input.name == name)
    }

    fn braced(&self, name: &str, sink: Sink) -> Result<Option<String>, CallError> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        let Some((_, variable)) = found else { return Ok(None) };
        if variable.is_secret && sink == Sink::Argument {
            let message =
                format!("`{name}` is a secret, and arguments and addresses can be seen by others");
            return Err(CallError::new(Kind::Denied, message));
        }
        Ok(Some(variable.value.clone()))
    }

    fn is_secret(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, variable)| known == name && variable.is_secret)
    }
}
