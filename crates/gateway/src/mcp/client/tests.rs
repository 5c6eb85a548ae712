use super::*;

fn client() -> Arc<Client> {
    Arc::new(Client::new(Caller {
        session: "session".to_owned(),
        name: "name".to_owned(),
        has_token: false,
        view: View::Usual,
        folder: PathBuf::new(),
        asks: false,
    }))
}

#[test]
fn so_many_requests_are_worked_on_at_a_time_and_no_more() {
    let client = client();
    let begin = |number: usize| client.begin(&Id::own(number as u64));
    let mut all: Vec<_> = (0..AT_A_TIME).map(|number| begin(number).unwrap()).collect();
    let refused = begin(AT_A_TIME).err().unwrap();
    assert!(refused.message.starts_with("too many requests at once"), "{refused:?}");
    all.pop();
    assert!(begin(AT_A_TIME).is_ok());
}

#[test]
fn a_level_that_was_said_before_the_greeting_was_answered_counts() {
    let client = client();
    let greeting = Greeting {
        revision: Revision::V2025_11_25,
        capabilities: Map::new(),
        log_level: None,
        says: None,
    };
    client.greet(greeting.clone());
    client.log_from("error");
    client.greet(greeting);
    assert_eq!(client.greeting().unwrap().log_level.as_deref(), Some("error"));
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_called_gone() {
    let asked = Asked {
        client: client(),
        revision: Revision::V2026_07_28,
        capabilities: Map::new(),
        meta: Meta::default(),
        id: Id::own(0),
        line: Line::new().0,
        cancel: CancellationToken::new(),
    };
    let asker = asked.asker(Some(mpsc::channel(1).0));
    let refused = asker.ask("roots/list", json!({})).await.unwrap_err();
    assert_eq!(refused.message, "the client cannot be asked within this request");
}
