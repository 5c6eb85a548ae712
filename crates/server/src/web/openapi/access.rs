//! What reviewers, owners and administrators can ask.

use registry::{
    Decision, Exchange, Given, NewPublisher, NewToken, Owners, Publisher, Publishers, Reviews,
    Token, Tokens, WaitingList,
};

use super::{Operation, PLAIN, Shapes, nothing};

const OWNERS: &str = "/v1/tools/{id}/owners";
const OWNER: &str = "/v1/tools/{id}/owners/{namespace}";
const REVIEW: &str = "/v1/tools/{id}/versions/{version}/review";

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn operations() -> Vec<Operation> {
    let shown = Operation { token: true, refusals: &[400, 405, 500, 503], ..PLAIN };
    let changed = Operation {
        method: "post",
        token: true,
        refusals: &[400, 404, 405, 408, 413, 500, 503],
        ..PLAIN
    };
    vec![
        Operation {
            path: "/v1/reviews",
            name: "listWaiting",
            summary: "The versions that wait for a reviewer, the oldest first",
            parameters: &["limit", "offset"],
            answers: |shapes| vec![shapes.json::<WaitingList>(200)],
            ..shown
        },
        Operation {
            path: REVIEW,
            name: "listReviews",
            summary: "What reviewers have said of a version, the oldest first",
            parameters: &["id", "version"],
            answers: |shapes| vec![shapes.json::<Reviews>(200)],
            refusals: &[400, 404, 405, 500, 503],
            ..shown
        },
        Operation {
            path: REVIEW,
            name: "reviewVersion",
            summary: "Approves a version into a channel, or refuses it",
            parameters: &["id", "version"],
            body: Some(Shapes::body::<Decision>),
            answers: |_| vec![nothing(204)],
            ..changed
        },
        Operation {
            path: OWNERS,
            name: "listOwners",
            summary: "Whose tokens may publish a tool",
            parameters: &["id"],
            answers: |shapes| vec![shapes.json::<Owners>(200)],
            refusals: &[400, 404, 405, 500, 503],
            ..PLAIN
        },
        Operation {
            method: "put",
            path: OWNER,
            name: "addOwner",
            summary: "Lets the tokens of a namespace publish a tool",
            parameters: &["id", "owner"],
            answers: |shapes| vec![shapes.json::<Owners>(200)],
            refusals: &[400, 404, 405, 409, 500, 503],
            ..changed
        },
        Operation {
            method: "delete",
            path: OWNER,
            name: "removeOwner",
            summary: "Lets the tokens of a namespace publish a tool no more",
            parameters: &["id", "owner"],
            answers: |shapes| vec![shapes.json::<Owners>(200)],
            refusals: &[400, 404, 405, 409, 500, 503],
            ..changed
        },
        Operation {
            path: "/v1/token",
            name: "describeToken",
            summary: "What is known of the token that is shown",
            answers: |shapes| vec![shapes.json::<Token>(200)],
            ..shown
        },
        Operation {
            path: "/v1/tokens",
            name: "listTokens",
            summary: "The tokens that an administrator may see, without what they are",
            answers: |shapes| vec![shapes.json::<Tokens>(200)],
            ..shown
        },
        Operation {
            path: "/v1/tokens",
            name: "makeToken",
            summary: "Makes a token, which is told once",
            body: Some(Shapes::body::<NewToken>),
            answers: |shapes| vec![shapes.json::<Given>(201)],
            ..changed
        },
        Operation {
            path: super::super::door::EXCHANGE,
            name: "exchangeIdentity",
            summary: "Gives a token to publish with for an identity that a trusted issuer has sworn",
            body: Some(Shapes::body::<Exchange>),
            token: false,
            answers: |shapes| vec![shapes.json::<Given>(201)],
            ..changed
        },
        Operation {
            method: "delete",
            path: "/v1/tokens/{id}",
            name: "revokeToken",
            summary: "Ends a token",
            parameters: &["token"],
            answers: |_| vec![nothing(204)],
            ..changed
        },
        Operation {
            path: "/v1/publishers",
            name: "listPublishers",
            summary: "Whose identities are trusted",
            answers: |shapes| vec![shapes.json::<Publishers>(200)],
            ..shown
        },
        Operation {
            path: "/v1/publishers",
            name: "addPublisher",
            summary: "Trusts the identities that an issuer swears, as a rule says",
            body: Some(Shapes::body::<NewPublisher>),
            answers: |shapes| vec![shapes.json::<Publisher>(201)],
            ..changed
        },
        Operation {
            method: "delete",
            path: "/v1/publishers/{id}",
            name: "removePublisher",
            summary: "Trusts them no more",
            parameters: &["publisher"],
            answers: |_| vec![nothing(204)],
            ..changed
        },
    ]
}
