//! Bytes as base64, in JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;
use zeroize::Zeroizing;

pub(super) fn serialize<S: Serializer>(bytes: impl AsRef<[u8]>, out: S) -> Result<S::Ok, S::Error> {
    let text = Zeroizing::new(STANDARD.encode(bytes.as_ref()));
    out.serialize_str(&text)
}

pub(super) fn deserialize<'de, D, B>(input: D) -> Result<B, D::Error>
where
    D: Deserializer<'de>,
    B: TryFrom<Vec<u8>>,
{
    let text = Zeroizing::<String>::deserialize(input)?;
    let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| Error::custom("no base64"))?;
    B::try_from(bytes).map_err(|_| Error::custom("another length was expected"))
}
