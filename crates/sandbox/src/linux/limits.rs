//! Limits that the kernel holds for each process.

use rustix::process::{Resource, Rlimit};

use super::mounts::Doing;
use super::process::Namespaces;
use super::wire::Bounds;
use crate::level::Fault;

/// Sets the limits on this process, which cannot raise them again and hands them to all it starts.
pub(crate) fn set(bounds: &Bounds, namespaces: Namespaces) -> Result<(), Fault> {
    let one = |resource: Resource, most: u64| {
        // A limit the host itself is under cannot be raised, and need not be.
        let already = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = Some(most.min(already));
        let limit = Rlimit { current: most, maximum: most };
        rustix::process::setrlimit(resource, limit).doing(|| format!("limit {resource:?}"))
    };
    // One byte: too little for a file, and the kernel starts no program to take it either.
    one(Resource::Core, 1)?;
    one(Resource::Nofile, u64::from(bounds.open_files.max(8)))?;
    if let Some(size) = bounds.file_size {
        one(Resource::Fsize, size)?;
    }
    if let Some(memory) = bounds.memory {
        // The sum over all processes is held elsewhere; this only makes a single absurd
        // request fail at once instead of killing the tree. Memory that is reserved and not used counts
        // here, and some runtimes reserve much, so it leaves room.
        one(Resource::Data, memory.saturating_mul(4).max(memory.saturating_add(4 << 30)))?;
        one(Resource::Memlock, memory.min(64 << 20))?;
    }
    if let Some(milliseconds) = bounds.cpu_time_ms {
        one(Resource::Cpu, milliseconds.div_ceil(1000) + 1)?;
    }
    if namespaces == Namespaces::New {
        // Counted within the user namespace, so it counts this tree alone. Root is not bound by it.
        one(Resource::Nproc, u64::from(bounds.processes) + 1)?;
    }
    one(Resource::Msgqueue, 1 << 20)?;
    one(Resource::Rtprio, 0)?;
    one(Resource::Nice, 0)?;
    one(Resource::Sigpending, 4096)
}
