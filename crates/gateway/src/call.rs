//! A call that is asked for by anybody but a client of MCP: one request, one answer, nobody to ask meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use host::{Call, CallError, CancellationToken, Kind, Output, TraceContext};
use policy::{Surface, Who};
use serde_json::{Map, Value};

use crate::gateway::Gateway;
use crate::offer::Offer;
use crate::shelf::Stock;
use crate::undertaking::Undertaking;
use crate::watch::Told;

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct By {
    /// As its owner knows it.
    pub(crate) name: String,
    /// Where tools are called from.
    pub(crate) folder: PathBuf,
    /// The trace that it is in.
    pub(crate) traceparent: Option<TraceContext>,
}

/// Makes a call. What was asked of the owner before is taken with it, where it is the same call.
pub(crate) async fn make(
    gateway: &Gateway,
    stock: &Arc<Stock>,
    offer: &Arc<Offer>,
    arguments: Value,
    by: By,
) -> Result<Output, CallError> {
    let input = arguments.to_string();
    let call = Call {
        action: offer.action.clone(),
        input,
        surface: Surface::Agent {
            name: "http".to_owned(),
            session: by.name.clone(),
            who: Who { name: Some(by.name.clone()), has_token: true, says: None },
        },
        approver: None,
        ticket: None,
        folder: by.folder,
        within: None,
        progress: None,
        implementation: None,
        peer: None,
        resumed: None,
        context: None,
        called_off: CancellationToken::new(),
    };
    let (package, context) = (&*offer.package.id, by.traceparent);
    let about = Told { package, surface: "http", request: None, context };
    let calling = gateway.watch.call(&offer.name, about);
    let made = Undertaking::new(gateway, stock, offer, call, calling).await;
    made.map_err(|words| CallError::new(Kind::Unavailable, words))?.reply
}

/// Arguments without what only stands there because every property had to: a model that is held to a strict schema writes `null`
/// for what it would leave out.
pub(crate) fn without_needless(mut arguments: Value, schema: &Value) -> Value {
    if let Value::Object(all) = &mut arguments {
        prune(all, schema);
    }
    arguments
}

fn prune(all: &mut Map<String, Value>, schema: &Value) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    all.retain(|name, value| {
        let property = &schema["properties"][name.as_str()];
        let is_needless = value.is_null()
            && property.is_object()
            && !required.iter().any(|one| *one == name)
            && !takes_null(property);
        !is_needless
    });
    for (name, value) in all {
        if let Value::Object(inner) = value {
            prune(inner, &schema["properties"][name.as_str()]);
        }
    }
}

/// Whether a schema lets a value be `null`. What cannot be said is let.
fn takes_null(schema: &Value) -> bool {
    let by_type = match &schema["type"] {
        Value::String(kind) => kind == "null",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
        _ => true,
    };
    let by_enum = schema["enum"].as_array().is_none_or(|all| all.contains(&Value::Null));
    by_type && by_enum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_that_says_nothing_is_left_out() {
        let schema = json!({
            "properties": {
                "a": { "type": "string" },
                "b": { "type": ["string", "null"] },
                "c": { "type": "string" },
                "d": { "type": "object", "properties": { "e": { "type": "integer" } } },
                "f": {},
                "g": { "type": "string", "enum": ["x"] },
            },
            "required": ["c"],
        });
        let all = json!({ "a": null, "b": null, "c": null, "d": { "e": null }, "f": null, "g": null, "h": null });
        let left = without_needless(all, &schema);
        assert_eq!(left, json!({ "b": null, "c": null, "d": {}, "f": null, "h": null }));
    }
}
