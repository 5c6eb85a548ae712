//! A registry to try, and somebody who asks it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use serde_json::Value;
use server::service::make_token;
use server::token::{Role, Scope};
use server::{Blobs, Registry, Settings, Store};
use tower::ServiceExt;

/// The host that everybody names, as programs and browsers do.
const HOST: (&str, &str) = ("host", "tools.example.com");

/// A registry and what it is kept in.
pub(crate) struct World {
    pub(crate) registry: Arc<Registry>,
    pub(crate) database: String,
    pub(crate) blobs: Blobs,
    /// A token for everything.
    pub(crate) token: String,
    /// Kept until the end.
    pub(crate) _folder: tempfile::TempDir,
}

/// The moment that an answer tells, in milliseconds since 1970.
pub(crate) fn moment(told: &Value) -> u64 {
    let read = told.as_str().and_then(registry::moment::read);
    read.unwrap_or_else(|| panic!("`{told}` is no moment"))
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that it is this refusal, in the error model.
    pub(crate) fn refuses(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!(
            (self.status.as_u16(), &body["error"]["code"]),
            (status, &Value::from(code)),
            "{body}"
        );
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(body["error"]["details"].is_object());
        assert_eq!(self.header("content-type"), "application/json");
    }
}

impl World {
    pub(crate) async fn new(database: String, blobs: Blobs, folder: tempfile::TempDir) -> Self {
        let store = Store::open(&database).await.unwrap();
        let (secret, _) = make_token(&store, Scope::All, Role::Publish, None).await.unwrap();
        let settings = Settings { upload_bytes: 1 << 20, ..Settings::default() };
        let registry = Arc::new(Registry::open(store, blobs.clone(), settings).await.unwrap());
        Self { registry, database, blobs, token: secret.reveal().to_owned(), _folder: folder }
    }

    /// The same stores, served with other settings.
    pub(crate) async fn set(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.registry.settings.clone();
        change(&mut settings);
        let store = Store::open(&self.database).await.unwrap();
        let opened = Registry::open(store, self.blobs.clone(), settings).await;
        self.registry = Arc::new(opened.unwrap());
    }

    /// Another process with the same stores.
    pub(crate) async fn replica(&self) -> Arc<Registry> {
        let store = Store::open(&self.database).await.unwrap();
        Arc::new(Registry::open(store, self.blobs.clone(), Settings::default()).await.unwrap())
    }

    /// Changes the database behind the registry's back.
    pub(crate) async fn sql(&self, change: &'static str) {
        use sqlx::{ConnectOptions, Connection};
        if self.database.starts_with("postgres") {
            let mut connection = sqlx::PgConnection::connect(&self.database).await.unwrap();
            sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
        } else {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&self.database);
            let mut connection = options.connect().await.unwrap();
            sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
        }
    }

    pub(crate) async fn token_for(
        &self,
        namespace: &str,
        role: Role,
        lifetime: Option<Duration>,
    ) -> String {
        let made = make_token(&self.registry.store, Scope::named(namespace), role, lifetime).await;
        made.unwrap().0.reveal().to_owned()
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        ask(&self.registry, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, HOST).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Answer {
        self.send(Method::GET, path, token, "").await
    }

    pub(crate) async fn get_with(&self, path: &str, header: (&str, &str)) -> Answer {
        self.ask(Request::get(path).header(header.0, header.1).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn publish(&self, bytes: impl Into<Body>) -> Answer {
        self.send(Method::POST, "/v1/tools", &self.token, bytes).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: impl Into<Body>,
    ) -> Answer {
        let request = Request::builder().method(method).uri(path).header(HOST.0, HOST.1);
        let request = request.header("authorization", format!("Bearer {token}"));
        self.ask(request.body(body.into()).unwrap()).await
    }
}

pub(crate) async fn ask(registry: &Arc<Registry>, request: Request<Body>) -> Answer {
    let app = server::web::router(Arc::clone(registry));
    let answer = app.oneshot(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    Answer { status: parts.status, headers: parts.headers, body }
}
