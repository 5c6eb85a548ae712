//! `subscriptions/listen`: a request that stays open, and by which its client is told what changes.

use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::client::{Asked, Client, Line, lock};
use super::error::Error;
use super::message::{self, Id};
use super::revision::key;
use super::servers;
use crate::gateway::Gateway;

/// The most resources that one subscription is about.
const MOST_RESOURCES: usize = 1000;

/// Somebody who listens.
#[derive(Debug)]
pub(crate) struct Subscription {
    id: Id,
    wanted: Vec<&'static str>,
    resources: Vec<String>,
    line: Line,
}

/// What can be listened for, and what that is called.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "tools"),
    ("promptsListChanged", "prompts"),
    ("resourcesListChanged", "resources"),
];

/// Listens until it is called off or nobody is there any more.
pub(crate) async fn listen(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    params: &Value,
) -> Result<String, Error> {
    let filter = &params["notifications"];
    let stock = gateway.stock().await;
    let has_servers = !servers::of_view(&stock, &asked.client.view).is_empty();
    let is_offered = |of: &str| of == "tools" || has_servers;
    let wanted: Vec<_> =
        LISTS.into_iter().filter(|(key, of)| filter[key] == true && is_offered(of)).collect();
    let resources: Vec<String> = filter["resourceSubscriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|uri| uri.as_str().map(str::to_owned))
        .take(if has_servers { MOST_RESOURCES } else { 0 })
        .collect();
    let mut accepted = json!({});
    for (key, _) in &wanted {
        accepted[key] = true.into();
    }
    if !resources.is_empty() {
        accepted["resourceSubscriptions"] = resources.clone().into();
    }
    let about = asked.id.to_value();
    let acknowledged = json!({
        "_meta": { key::SUBSCRIPTION: about },
        "notifications": accepted,
    });
    let text = message::notification("notifications/subscriptions/acknowledged", &acknowledged);
    asked.line.send(text).await;
    for uri in &resources {
        // One that cannot be watched is one of which nothing is told.
        let _ = servers::watch(gateway, asked, "resources/subscribe", uri).await;
    }
    let subscription = Arc::new(Subscription {
        id: asked.id.clone(),
        wanted: wanted.iter().map(|(_, of)| *of).collect(),
        resources,
        line: asked.line.clone(),
    });
    asked.client.subscribe(&subscription);
    gateway.join(&asked.client);
    asked.line.closed().await;
    Ok(json!({ "resultType": "complete", "_meta": { key::SUBSCRIPTION: about } }).to_string())
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

    /// Tells it that a resource has changed, where it wants to know.
    pub(crate) fn updated(&self, uri: &str, params: &Value) {
        if lock(&self.watched).contains(uri) {
            self.notify("notifications/resources/updated", params);
        }
        for one in
            self.subscribed().iter().filter(|one| one.resources.iter().any(|known| known == uri))
        {
            one.tell("notifications/resources/updated", params.clone());
        }
    }

    fn subscribed(&self) -> Vec<Arc<Subscription>> {
        lock(&self.subscriptions).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Subscription {
    fn tell(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({ key::SUBSCRIPTION: self.id.to_value() });
        self.line.tell(message::notification(method, &params));
    }
}
