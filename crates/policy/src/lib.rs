//! What a tool may do, and why.
//!
//! [`decide()`] is a pure function of the call, the owner's [`Policy`], the [`Grants`] of the package
//! and what the owner has [answered](Memory) before. It always explains: every rule that had a
//! say is in the [`Decision`], in the order it was asked.
//!
//! - [`policy`]: `policy.toml`, read and checked
//! - [`grants`]: what the owner allowed one package
//! - [`arguments`]: the arguments of a call, by digest and by pattern
//! - [`approval`]: questions to the owner, and answers that are remembered
//! - [`decision`]: allowed, to be asked, or denied, with reasons and walls
//! - [`decide`](mod@decide): the decision itself
//! - [`rank`]: how good a tool is, by the weights of the owner
//!
//! Nothing here touches the disk, the network, the clock or the environment.

pub mod approval;
pub mod arguments;
pub mod decide;
pub mod decision;
pub mod grants;
pub mod policy;
pub mod rank;

pub use approval::{Answer, Memory, Question, Remembered, Surface, Who, Why};
pub use arguments::{Arguments, Pattern, digest_of};
pub use decide::{Asked, Consent, decide, denies, denies_network, may_be_passed, may_have_device};
pub use decision::{Allowance, Decision, Denial, HostAllowance, Reason, SetBy, Verdict};
pub use grants::{Grant, Grants, Kind as GrantKind};
pub use policy::{
    ContainerWay, DEFAULTS, Judges, Level, OnInstall, OnViolation, Policy, PolicyError, SourceRules,
};
