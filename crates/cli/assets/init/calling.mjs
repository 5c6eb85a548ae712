// --- calling: a JSON object into the arguments of a function, and its result into JSON ---

/** The functions a loaded module offers, by export name, with the object that holds them. */
function exportsOf(loaded) {
  const found = new Map();
  const inner = loaded.default;
  const nested = inner && (typeof inner === "object" || typeof inner === "function") ? inner : {};
  for (const holder of [loaded, nested]) {
    for (const name of Object.keys(holder)) {
      const usable = typeof holder[name] === "function" && name !== "module.exports";
      if (usable && (!found.has(name) || found.get(name)[name] === holder[name])) found.set(name, holder);
    }
  }
  return found;
}

/** The arguments of a call, from the input object and the way the function is called. */
function argumentsFor(call, given) {
  const input = { ...given };
  for (const name of call.dates ?? []) {
    if (typeof input[name] !== "string") continue;
    input[name] = new Date(input[name]);
    if (Number.isNaN(input[name].getTime())) throw new TypeError(`argument "${name}" is not a date`);
  }
  if (call.style === "object") return [input];
  const unknown = Object.keys(input).find((name) => !call.names.includes(name));
  if (unknown !== undefined) throw new TypeError(`unexpected argument "${unknown}"`);
  return call.names.map((name) => (Object.hasOwn(input, name) ? input[name] : undefined));
}

/** Waits for a promise; one that can never settle, because nothing is left to do, fails. */
function settled(work) {
  const never = new Promise((_, fail) => {
    process.once("beforeExit", () => fail(new Error("the promise never settles")));
  });
  return Promise.race([work, never]);
}

/** What an iterator or an asynchronous iterator gives, as an array; anything else as it is. */
async function collected(value) {
  const steps = typeof value?.next === "function";
  if (!steps && typeof value?.[Symbol.asyncIterator] !== "function") return value;
  const items = [];
  for await (const item of value) items.push(item);
  return items;
}

/** JSON.stringify's replacer for what JSON has no form of its own for. */
function jsonForm(key, value) {
  const raw = this[key];
  if (raw instanceof ArrayBuffer || ArrayBuffer.isView(raw)) throw new TypeError("bytes have no JSON form");
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${value} has no JSON form`);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Map) return Object.fromEntries(value);
  return value instanceof Set ? [...value] : value;
}

/** One line of JSON for a result; nothing counts as null. */
function toJson(value) {
  const text = JSON.stringify(value ?? null, jsonForm);
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON form`);
  return text;
}

/** Calls the tool with an input object and gives its result as one line of JSON. */
async function callTool(holder, name, call, given) {
  const work = (async () => collected(await holder[name](...argumentsFor(call, given))))();
  return toJson(await settled(work));
}

/** An error as `Type: message`. */
function errorText(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${String(error)}`;
}
