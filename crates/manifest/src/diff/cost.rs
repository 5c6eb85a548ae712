//! What the tool costs.

use serde_json::Value;

use super::Class;
use super::changes::Changes;
use super::words::quoted;
use crate::concept::Concept;
use crate::model::Json;

/// Compares costs: what grows, or is no longer said, is put before the owner.
pub(super) fn compare(changes: &mut Changes, old: Option<&Json>, new: Option<&Json>) {
    let value = |cost: Option<&Json>| cost.map_or(Value::Null, Json::value);
    let (before, after) = (value(old), value(new));
    if before == after {
        return;
    }
    let mut topic = changes.about("cost");
    for (key, noun) in [("install_fee_cents", "install fee"), ("monthly_fee_cents", "monthly fee")]
    {
        let fee = |cost: &Value| cost[key].as_f64();
        let show = |fee: f64| quoted(&format!("{fee} cents"));
        let (class, message) = match (fee(&before), fee(&after)) {
            (Some(was), Some(is)) if is > was => {
                (Class::NeedsReview, format!("rose from {} to {}", show(was), show(is)))
            }
            (Some(was), Some(is)) if is < was => {
                (Class::Additive, format!("fell from {} to {}", show(was), show(is)))
            }
            (None, Some(is)) if is > 0.0 => (Class::NeedsReview, format!("is {} now", show(is))),
            (None, Some(is)) => (Class::Additive, format!("is said to be {} now", show(is))),
            (Some(was), None) => {
                (Class::NeedsReview, format!("was {} and is not said any more", show(was)))
            }
            (Some(_), Some(_)) | (None, None) => continue,
        };
        topic.tell(class, Concept::Cost, format!("the {noun} {message}"));
    }
    let model = |cost: &Value| cost["usage_model"].as_str().map(str::to_owned);
    let (was, is) = (model(&before), model(&after));
    if was != is {
        let is_free = is.as_deref() == Some("none");
        let class = if is_free { Class::Additive } else { Class::NeedsReview };
        let show = |model: Option<String>| quoted(model.as_deref().unwrap_or("undeclared"));
        let message = format!("use was charged by {} and is now by {}", show(was), show(is));
        topic.tell(class, Concept::Cost, message);
    }
    let url = |cost: &Value| cost["estimate_url"].as_str().map(str::to_owned);
    let (was, is) = (url(&before), url(&after));
    if was != is {
        let show = |url: Option<String>| quoted(url.as_deref().unwrap_or("nowhere"));
        let message = format!("estimates were given at {} and are now at {}", show(was), show(is));
        topic.tell(Class::Cosmetic, Concept::Cost, message);
    }
}

/// Compares whether the tool spends money: silence is no promise that it does not.
pub(super) fn payment(changes: &mut Changes, old: Option<bool>, new: Option<bool>) {
    let rank = |uses: Option<bool>| match uses {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    if old == new {
        return;
    }
    let class = if rank(new) > rank(old) { Class::NeedsReview } else { Class::Additive };
    let show =
        |uses: Option<bool>| uses.map_or("undeclared", |uses| if uses { "yes" } else { "no" });
    let message =
        format!("spending money was {} and is now {}", quoted(show(old)), quoted(show(new)));
    changes.about("cost").tell(class, Concept::Payment, message);
}
