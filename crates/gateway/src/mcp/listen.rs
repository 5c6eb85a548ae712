//! `subscriptions/listen`: a request that stays open, and by which its client is told what changes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::client::{Asked, Client, Line, lock};
use super::error::Error;
use super::message::{self, Id};
use super::revision::key;
use super::watching::{self, UPDATED, Watches};
use super::{hosted, servers};
use crate::gateway::Gateway;

/// How long servers may take to say that they tell of the resources of a subscription.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many messages wait for a subscription to be acknowledged.
const MOST_HELD: usize = 256;

/// Somebody who listens.
#[derive(Debug)]
pub(crate) struct Subscription {
    id: Id,
    wanted: Vec<&'static str>,
    watches: Watches,
    line: Line,
    /// What is told once it is acknowledged; nothing after that.
    held: Mutex<Option<Vec<(String, Value)>>>,
}

/// What can be listened for, and what that is called.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "tools"),
    ("promptsListChanged", "prompts"),
    ("resourcesListChanged", "resources"),
];

/// The method.
pub(crate) const METHOD: &str = "subscriptions/listen";

/// What whoever listened is told at the end: it was no failure.
pub(crate) fn ended(id: &Id) -> String {
    let about = json!({ key::SUBSCRIPTION: id.to_value() });
    json!({ "resultType": "complete", "_meta": about }).to_string()
}

/// Listens until it is called off or nobody is there any more.
pub(crate) async fn listen(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    params: &Value,
) -> Result<String, Error> {
    let filter = &params["notifications"];
    let stock = gateway.stock().await;
    let has_servers = !hosted::of_view(&stock, &asked.client.view).is_empty();
    let is_offered = |of: &str| of == "tools" || has_servers;
    let wanted: Vec<_> =
        LISTS.into_iter().filter(|(key, of)| filter[key] == true && is_offered(of)).collect();
    let resources = if has_servers { resources(filter) } else { Vec::new() };
    // What is told while servers are asked is told with the rest.
    let subscription = Arc::new(Subscription {
        id: asked.id.clone(),
        wanted: wanted.iter().map(|(_, of)| *of).collect(),
        watches: Watches::default(),
        line: asked.line.clone(),
        held: Mutex::new(Some(Vec::new())),
    });
    asked.client.subscribe(&subscription);
    gateway.join(&asked.client);
    let resources = subscription.watch(gateway, asked, resources).await;
    let mut accepted = json!({});
    for (key, _) in &wanted {
        accepted[key] = true.into();
    }
    let watches = !resources.is_empty();
    if watches {
        accepted["resourceSubscriptions"] = resources.into();
    }
    let about = asked.id.to_value();
    let acknowledged = json!({
        "_meta": { key::SUBSCRIPTION: about },
        "notifications": accepted,
    });
    let text = message::notification("notifications/subscriptions/acknowledged", &acknowledged);
    asked.line.send(text).await;
    subscription.release();
    let tell = |uri: &str| subscription.tell(UPDATED, json!({ "uri": uri }));
    tokio::select! {
        () = asked.line.closed() => {}
        () = watching::keep_for(gateway, asked, &subscription.watches, &tell), if watches => {}
    }
    Ok(ended(&asked.id))
}

/// The resources that a filter names, each once, and only so many of them.
fn resources(filter: &Value) -> Vec<String> {
    let mut known = HashSet::new();
    let named = filter["resourceSubscriptions"].as_array().into_iter().flatten();
    let new = named.filter_map(Value::as_str).filter(|uri| known.insert(*uri));
    new.take(watching::MOST).map(str::to_owned).collect()
}

impl Client {
    fn subscribe(&self, subscription: &Arc<Subscription>) {
        let mut all = lock(&self.subscriptions);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(subscription));
    }

    /// Tells it that a list has changed, where it wants to know.
    pub(crate) fn changed(&self, of: &'static str) {
        let method = format!("notifications/{of}/list_changed");
        if self.greeting().is_some() && self.was_told_of(of) {
            self.notify(&method, &Value::Null);
        }
        for one in self.subscribed().iter().filter(|one| one.wanted.contains(&of)) {
            one.tell(&method, json!({}));
        }
    }

    /// Tells it that a resource of a package has changed, where it wants to know.
    pub(crate) fn updated(&self, package: &str, uri: &str, params: &Value) {
        if self.watches.has(package, uri) {
            self.notify(UPDATED, params);
        }
        for one in self.subscribed().iter().filter(|one| one.watches.has(package, uri)) {
            one.tell(UPDATED, params.clone());
        }
    }

    fn subscribed(&self) -> Vec<Arc<Subscription>> {
        lock(&self.subscriptions).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Subscription {
    /// Has servers tell of resources; those of which they do by the time that they may take.
    async fn watch(
        &self,
        gateway: &Arc<Gateway>,
        asked: &Asked,
        resources: Vec<String>,
    ) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let each = resources.into_iter().map(|uri| async move {
            let begun = servers::watch(gateway, asked, &self.watches, &uri);
            if let Ok(Ok(true)) = timeout_at(until, begun).await {
                return Some(uri);
            }
            self.watches.end(&uri);
            None
        });
        let told = stream::iter(each.collect::<Vec<_>>()).buffered(watching::AT_A_TIME);
        told.filter_map(std::future::ready).collect().await
    }

    fn tell(&self, method: &str, params: Value) {
        match &mut *lock(&self.held) {
            Some(held) if held.len() < MOST_HELD => held.push((method.to_owned(), params)),
            Some(_) => {}
            None => self.say(method, params),
        }
    }

    /// Tells what was held back, and holds back nothing more.
    fn release(&self) {
        for (method, params) in lock(&self.held).take().into_iter().flatten() {
            let uri = params["uri"].as_str().filter(|_| method == UPDATED);
            // Of what was not acknowledged nothing is told.
            if uri.is_none_or(|uri| self.watches.has_any_of(uri)) {
                self.say(&method, params);
            }
        }
    }

    fn say(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({ key::SUBSCRIPTION: self.id.to_value() });
        self.line.tell(message::notification(method, &params));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_that_is_named_often_is_watched_once_and_takes_no_place_from_another() {
        let number = |number: usize| json!(format!("x://{}", number / 100));
        let all: Vec<_> = (0..2 * watching::MOST * 100).map(number).collect();
        let named = resources(&json!({ "resourceSubscriptions": all }));
        let expected: Vec<_> = (0..watching::MOST).map(|one| format!("x://{one}")).collect();
        assert_eq!(named, expected);
        let odd = json!([1, null, "x://a", {}, "x://a"]);
        assert_eq!(resources(&json!({ "resourceSubscriptions": odd })), ["x://a"]);
        assert!(resources(&json!({ "resourceSubscriptions": "x://a" })).is_empty());
    }
}
