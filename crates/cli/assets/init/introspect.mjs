// Describes one JavaScript function as JSON: schemas, files, a sample input and, if asked, its result.
//
// Usage: introspect.mjs FILE [--export NAME] [--call] [--input JSON]

import { existsSync, readFileSync, statSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { runInNewContext } from "node:vm";

const FILE_LIMIT = 200;

/** A reason why no package can be made, in one sentence, with a hint. */
class Refused extends Error {
  constructor(message, hint = "") {
    super(message);
    this.hint = hint;
  }
}

/** A type that JSON has no form for; its message names the type. */
class NoJson extends Error {}

/** A type that contains itself came round again. */
class Endless extends Error {}

// @CALLING@

// --- reading source text ---

const STRINGS = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[^])*`/y;

/** Where the bracket at a position closes, strings skipped; -1 when it does not. */
function closing(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    STRINGS.lastIndex = at;
    if (STRINGS.test(text)) at = STRINGS.lastIndex - 1;
    else if ("([{".includes(text[at])) depth += 1;
    else if (")]}".includes(text[at]) && (depth -= 1) === 0) return at;
  }
  return -1;
}

/** The parts of a text between commas that are in no bracket and no string. */
function parts(text) {
  const found = [];
  let from = 0;
  for (let at = 0; at <= text.length; at += 1) {
    STRINGS.lastIndex = at;
    if (STRINGS.test(text)) at = STRINGS.lastIndex - 1;
    else if ("([{".includes(text[at] ?? " ")) at = Math.max(at, closing(text, at));
    else if (at === text.length || text[at] === ",") {
      found.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return found.filter((part) => part !== "");
}

/** A source text without its comments. */
function withoutComments(source) {
  const either = new RegExp(`(${STRINGS.source})|/\\*[^]*?\\*/|//[^\\n]*`, "g");
  return source.replace(either, (_, kept) => kept ?? " ");
}

/** The value of a literal in source text; undefined when the text is anything else. */
function literal(text) {
  const plain = text.replace(new RegExp(STRINGS.source, "g"), (each) => (each[0] === "`" ? "(" : '""'));
  const words = /(?<![\w$])(?!(?:true|false|null)(?![\w$]))[A-Za-z_$][\w$]*(?!\s*:|[\w$])/;
  if (plain.trim() === "" || /[()=;]|\.\.\./.test(plain) || words.test(plain)) return undefined;
  try {
    return JSON.parse(JSON.stringify(runInNewContext(`(${text})`, Object.create(null), { timeout: 100 })));
  } catch {
    return undefined;
  }
}

/** The parameters in a function's own text: name or destructuring pattern, default, rest. */
function parametersOf(fn) {
  const text = withoutComments(fn.toString());
  const single = text.match(/^\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/);
  if (single) return [{ name: single[1] }];
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text)) return undefined;
  const open = text.indexOf("(");
  return parts(text.slice(open + 1, closing(text, open))).map(parameterIn);
}

/** One parameter from its text. */
function parameterIn(text) {
  if (text.startsWith("...")) return { name: text.slice(3).trim(), rest: true };
  const end = /^[{[]/.test(text) ? closing(text, 0) + 1 : text.search(/\s*(=|$)/);
  const fallback = text.slice(end).replace(/^\s*=/, "").trim();
  const made = { optional: fallback !== "", default: literal(fallback) };
  if (text[0] === "{") return { ...made, keys: parts(text.slice(1, end - 1)).map(keyIn) };
  return text[0] === "[" ? made : { ...made, name: text.slice(0, end) };
}

/** One key of a destructuring pattern from its text: `a`, `a = 1`, `a: b`, `...rest`. */
function keyIn(text) {
  if (text.startsWith("...")) return { name: text.slice(3), rest: true };
  const [, name, tail] = text.match(/^["']?([\w$-]+)["']?\s*([^]*)$/) ?? [null, text, ""];
  const fallback = tail.match(/^(?::[^=]*)?=\s*([^]*)$/)?.[1] ?? "";
  return { name, optional: fallback !== "", default: literal(fallback) };
}

// --- files ---

const RELATIVE = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\bnew\s+URL\s*\()\s*(["'])(\.{1,2}(?:\/[^"'\n]*)?)\1/g;
const PACKAGES = /(?:\b(?:import|export)\b[^;"'`()]*\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*(["'])([\w@][^"'\n]*)\1/g;

/** The file a relative import means, tried as Node would; undefined when there is none. */
function importedFile(from, specifier) {
  const base = resolve(dirname(from), specifier);
  const tries = ["", ".js", ".mjs", ".cjs", ".json", "/index.js", "/index.cjs"].map((end) => base + end);
  return tries.find((path) => existsSync(path) && statSync(path).isFile());
}

/** The text of the file and of everything it imports by a relative path. */
function sourcesFrom(file) {
  const sources = new Map();
  const waiting = [file];
  while (waiting.length > 0) {
    const path = waiting.pop();
    if (sources.has(path)) continue;
    const text = readFileSync(path, "utf8").replace(/\r\n/g, "\n");
    sources.set(path, text);
    if (sources.size > FILE_LIMIT) throw new Refused(`The file imports more than ${FILE_LIMIT} files.`, "Bundle it into one file.");
    const found = /\.[cm]?js$/.test(path) ? [...text.matchAll(RELATIVE)].map((match) => importedFile(path, match[2])) : [];
    waiting.push(...found.filter(Boolean));
  }
  return sources;
}

/** The npm packages that the sources import. */
function packagesOf(sources) {
  const names = new Set();
  for (const [path, text] of sources) {
    if (!/\.[cm]?js$/.test(path)) continue;
    for (const [, , specifier] of withoutComments(text).matchAll(PACKAGES)) {
      const name = specifier.match(/^(?:@[\w.-]+\/)?[\w.-]+(?=\/|$)/)?.[0];
      if (name && !builtinModules.includes(name)) names.add(name);
    }
  }
  return [...names].sort();
}

/** The folder that holds all files. */
function commonFolder(paths) {
  let folder = dirname(paths[0]);
  while (!paths.every((path) => path.startsWith(folder.endsWith(sep) ? folder : folder + sep))) folder = dirname(folder);
  return folder;
}

/** A path beneath a folder, with forward slashes; `.` for the folder itself. */
function within(folder, path) {
  return relative(folder, path).split(sep).join("/") || ".";
}

/** Whether .js files are ES modules: the nearest package.json says, else the syntax of the sources. */
function moduleType(file, sources) {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    const type = existsSync(path) ? packageType(path) : undefined;
    if (type) return type;
    if (existsSync(path) || folder === dirname(folder)) break;
  }
  const modern = [...sources].some(([path, text]) => path.endsWith(".js") && isModule(text));
  return modern || file.endsWith(".mjs") ? "module" : "commonjs";
}

/** The type that a package.json states, if it does. */
function packageType(path) {
  try {
    const { type } = JSON.parse(readFileSync(path, "utf8"));
    return type === "module" || type === "commonjs" ? type : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a source has import or export statements. */
function isModule(source) {
  return /^\s*(?:export\s*[{*]|export\s+\w|import\s*["'{*]|import\s+[\w$])/m.test(withoutComments(source));
}

// --- JSDoc ---

/** The text of a doc comment that ends at a position (that of its closing mark), without stars. */
function commentEndingAt(source, end) {
  const start = source.lastIndexOf("/**", end - 1);
  if (start < 0 || source.slice(start + 3, end).includes("*/")) return undefined;
  return source.slice(start + 3, end).replace(/^[ \t]*\*?[ \t]?/gm, "").trim();
}

const BETWEEN = new RegExp(
  "^\\s*(?://[^\\n]*\\n\\s*)*(?:export\\s+)?(?:default\\s+)?" +
    "(?:(?:const|let|var)\\s+[\\w$]+\\s*=\\s*|(?:[\\w$.]+\\s*=\\s*)+|[\"']?[\\w$]+[\"']?\\s*:\\s*)?\\(?$",
);

/** The doc comment directly above a function: where its own text stands, else where its name is declared. */
function commentAbove(sources, fn, name) {
  const body = fn.toString().replace(/\r\n/g, "\n");
  for (const source of sources.values()) {
    for (let at = source.indexOf(body); at >= 0; at = source.indexOf(body, at + 1)) {
      const end = source.lastIndexOf("*/", at);
      const near = end >= 0 && BETWEEN.test(source.slice(end + 2, at));
      const text = near ? commentEndingAt(source, end) : undefined;
      if (text !== undefined) return text;
    }
  }
  return commentByName(sources, name);
}

/** The doc comment above the declaration of a name. */
function commentByName(sources, name) {
  const word = name.replace(/\$/g, "\\$&");
  const before = "(?:function\\b\\s*\\*?\\s*|(?:const|let|var)\\s+|(?:module\\.)?exports\\.)";
  const declared = new RegExp(`\\*/\\s*(?:export\\s+)?(?:default\\s+)?(?:async\\s+)?${before}${word}(?![\\w$])`, "g");
  for (const source of sources.values()) {
    for (const match of source.matchAll(declared)) {
      const text = commentEndingAt(source, match.index);
      if (text !== undefined) return text;
    }
  }
  return undefined;
}

/** A doc comment's lead text and its tags: {tag, type, name, optional, default, note, text}. */
function parseComment(text) {
  const [lead, ...rest] = `\n${text ?? ""}`.split(/\n[ \t]*(?=@[A-Za-z])|[ \t]+(?=@(?:param|returns?)\s*\{)/);
  const tags = rest.map((each) => {
    const [, tag, body] = each.match(/^@(\w+)\s*([^]*)$/);
    return { tag, text: body.trim(), ...parseTag(body.trim()) };
  });
  const described = tags.find(({ tag }) => tag === "description" || tag === "desc" || tag === "summary");
  return { lead: lead.trim() || described?.text || "", tags };
}

/** The type, the name and the note in a tag's text. */
function parseTag(text) {
  const end = text.startsWith("{") ? closing(text, 0) : -1;
  const type = end > 0 ? text.slice(1, end).trim() : "";
  const rest = text.slice(end + 1).trim();
  const close = rest.startsWith("[") ? [closing(rest, 0), rest.indexOf("]")].find((at) => at > 0) ?? rest.length : -1;
  const [, name, note] = close > 0 ? [null, rest.slice(1, close), rest.slice(close + 1)] : rest.match(/^(\S*)([^]*)$/);
  const [, path, fallback] = name.match(/^([^=]*)(?:=([^]*))?$/);
  const optional = close > 0 || /=$/.test(type) || /(^|\|)\s*undefined\s*(\||$)/.test(type);
  const cleaned = note.trim().replace(/^-\s*/, "").replace(/\s+/g, " ");
  const after = rest.replace(/^-\s*/, "").replace(/\s+/g, " ");
  return { type: type.replace(/=$/, ""), name: path.trim(), optional, fallback: fallback?.trim(), note: cleaned, after };
}

/** The typedefs of all sources by name: a type text, or properties. */
function typedefsIn(sources) {
  const found = new Map();
  for (const source of sources.values()) {
    for (const match of source.matchAll(/\/\*\*[^]*?\*\//g)) {
      let current;
      for (const tag of parseComment(commentEndingAt(source, match.index + match[0].length - 2)).tags) {
        if (tag.tag === "typedef" || tag.tag === "callback") {
          current = { type: tag.tag === "callback" ? "Function" : tag.type, properties: [] };
          if (!/^import\s*\(/.test(tag.type)) found.set(tag.name, current);
        } else if (/^prop(erty)?$/.test(tag.tag)) current?.properties.push(tag);
      }
    }
  }
  return found;
}

// --- schemas ---

const NULL = { type: "null" };
const PLAIN = {
  string: "string", String: "string", number: "number", Number: "number", float: "number", double: "number",
  int: "integer", integer: "integer", boolean: "boolean", Boolean: "boolean", bool: "boolean",
  null: "null", undefined: "null", void: "null", object: "object", Object: "object",
};
const OPEN = ["any", "unknown", "mixed", "never", "*"];
const LISTS = ["Array", "ReadonlyArray", "Iterable", "AsyncIterable"];
const RESULT_LISTS = /^(Set|ReadonlySet|(Async)?(Iterator|IterableIterator|Generator))$/;
const NOT_JSON = new RegExp(
  "^(Function|function|[Ss]ymbol|RegExp|Weak\\w+|Buffer|ArrayBuffer|DataView|Blob|File|\\w*Array|\\w*Stream" +
    "|URL|bigint|BigInt|(Readonly)?(Map|Set)|\\w*(Iterator|Generator))$",
);

/** Makes the JSON Schemas of one side, input or output; types that contain themselves go to $defs. */
class Schemas {
  constructor(typedefs, { output = false, open = [], warnings = [] } = {}) {
    Object.assign(this, { typedefs, output, open, warnings, defs: {}, building: new Set(), recursive: new Set() });
  }

  /** The schema of a type text; one that is not understood is left open, with a warning. */
  of(text) {
    if (text === "") return {};
    const tokens = text.match(/=>|\.\.\.|[A-Za-z_$][\w$]*|\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S/g) ?? [];
    try {
      const schema = this.union(tokens);
      if (tokens.length > 0) throw new SyntaxError(tokens[0]);
      return schema;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.warnings.push(`the type "${text}" is not understood and is left open`);
      return {};
    }
  }

  /** Takes the next token if it is the one given. */
  take(tokens, token) {
    return tokens[0] === token ? tokens.shift() : undefined;
  }

  /** Takes the next token, which must be the one given. */
  need(tokens, token) {
    if (!this.take(tokens, token)) throw new SyntaxError(token);
  }

  union(tokens) {
    const choices = [];
    this.take(tokens, "|");
    do {
      const missing = tokens[0] === "undefined" && !this.output;
      const schema = this.intersection(tokens);
      if (!missing) choices.push(schema);
    } while (this.take(tokens, "|"));
    return choices.length === 0 ? NULL : anyOf(choices);
  }

  intersection(tokens) {
    const all = [this.postfix(tokens)];
    while (this.take(tokens, "&")) all.push(this.postfix(tokens));
    if (all.length === 1) return all[0];
    const objects = all.map((schema) => this.expand(schema));
    const required = objects.flatMap((schema) => schema.required ?? []);
    return this.object(Object.assign({}, ...objects.map((schema) => schema.properties)), required);
  }

  postfix(tokens) {
    let schema = this.prefix(tokens);
    for (;;) {
      if (tokens[0] === "[" && tokens[1] === "]") {
        tokens.splice(0, 2);
        schema = arrayOf(schema);
      } else if (this.take(tokens, "?")) schema = anyOf([schema, NULL]);
      else if (!this.take(tokens, "!")) return schema;
    }
  }

  prefix(tokens) {
    const token = tokens.shift();
    if (token === undefined) throw new SyntaxError("the type ends early");
    if (token === "?") return tokens.length === 0 ? {} : anyOf([this.postfix(tokens), NULL]);
    if (token === "!" || token === "readonly") return this.postfix(tokens);
    if (token === "...") throw new NoJson("rest parameter");
    if (token === "(") return this.group(tokens);
    if (token === "{") return this.members(tokens);
    if (token === "[") return this.tuple(tokens);
    if (token === "-") return valuesOf([-Number(tokens.shift())]);
    if (/^["'\d]/.test(token) || token === "true" || token === "false") return valuesOf([literal(token)]);
    if (token === "typeof" || token === "keyof") return tokens.shift() && {};
    if (token === "import") return this.imported(tokens);
    if (!/^[\w$*]/.test(token)) throw new SyntaxError(token);
    return this.name(token, tokens);
  }

  /** A type in parentheses; an arrow after them makes it a function. */
  group(tokens) {
    let depth = 1;
    const end = tokens.findIndex((token) => (depth += token === "(" ? 1 : token === ")" ? -1 : 0) === 0);
    if (tokens[end + 1] === "=>") throw new NoJson("function");
    const schema = this.union(tokens);
    this.need(tokens, ")");
    return schema;
  }

  /** `import("./x").Name`: a typedef of another file. */
  imported(tokens) {
    const end = tokens.indexOf(")");
    tokens.splice(0, end + 1);
    if (!this.take(tokens, ".")) return {};
    return this.name(tokens.shift(), tokens);
  }

  /** An object type: `{a: string, b?: number, [key: string]: T}`. */
  members(tokens) {
    const properties = {};
    const required = [];
    let other;
    while (!this.take(tokens, "}")) {
      if (this.take(tokens, "[")) {
        tokens.splice(0, tokens.indexOf("]") + 1);
        this.need(tokens, ":");
        other = this.union(tokens);
      } else {
        const name = tokens.shift()?.replace(/^["']|["']$/g, "");
        if (name === undefined || tokens[0] === "(") throw tokens[0] === "(" ? new NoJson("function") : new SyntaxError("}");
        if (!this.take(tokens, "?")) required.push(name);
        properties[name] = this.take(tokens, ":") ? this.union(tokens) : {};
      }
      if (!this.take(tokens, ",") && !this.take(tokens, ";") && tokens[0] !== "}") throw new SyntaxError("}");
    }
    const empty = Object.keys(properties).length === 0;
    if (empty) return other ? mapOf(other) : { type: "object" };
    return this.object(properties, required, other);
  }

  tuple(tokens) {
    const items = [];
    while (!this.take(tokens, "]")) {
      items.push(this.union(tokens));
      if (!this.take(tokens, ",") && tokens[0] !== "]") throw new SyntaxError("]");
    }
    if (items.length === 0) return { type: "array", maxItems: 0 };
    return { type: "array", prefixItems: items, minItems: items.length, maxItems: items.length };
  }

  /** A named type with its type arguments. */
  name(name, tokens) {
    const args = this.typeArguments(tokens);
    if (Object.hasOwn(PLAIN, name)) {
      return PLAIN[name] === "object" && args.length > 0 ? mapOf(args[args.length - 1]) : { type: PLAIN[name] };
    }
    if (OPEN.includes(name) || this.open.includes(name)) return {};
    if (["Promise", "PromiseLike", "Awaited", "Readonly", "NonNullable"].includes(name)) return args[0] ?? {};
    if (name === "Partial" && args[0]) return this.partial(args[0]);
    if (name === "Record") return mapOf(args[1] ?? {});
    if (name === "Date") return { type: "string", format: "date-time" };
    if (LISTS.includes(name) || (this.output && RESULT_LISTS.test(name))) return arrayOf(args[0] ?? {});
    if (this.output && /^(Map|ReadonlyMap|bigint|URL)$/.test(name)) return name.endsWith("Map") ? mapOf(args[1] ?? {}) : {};
    if (this.typedefs.has(name)) return this.named(name);
    if (NOT_JSON.test(name)) throw new NoJson(name);
    this.warnings.push(`the type "${name}" is not known and is left open`);
    return {};
  }

  /** `<A, B>`, or `.<A, B>` in the old style. */
  typeArguments(tokens) {
    if (tokens[0] === "." && tokens[1] === "<") tokens.shift();
    while (this.take(tokens, ".")) tokens.shift();
    const args = [];
    if (!this.take(tokens, "<")) return args;
    do args.push(this.union(tokens));
    while (this.take(tokens, ","));
    this.need(tokens, ">");
    return args;
  }

  partial(schema) {
    const { required: _, ...rest } = this.expand(schema);
    return rest;
  }

  /** The definition behind a reference. */
  expand(schema) {
    return schema.$ref ? this.defs[schema.$ref.split("/").pop()] ?? {} : schema;
  }

  /** The schema of a typedef: in place, or a $ref when it contains itself. */
  named(name) {
    const reference = { $ref: `#/$defs/${name}` };
    if (Object.hasOwn(this.defs, name)) return reference;
    if (this.building.has(name)) {
      this.recursive.add(name);
      return reference;
    }
    this.building.add(name);
    const { type, properties } = this.typedefs.get(name);
    const schema = properties.length > 0 ? this.entry({ type, name: "", optional: false }, properties) : this.of(type);
    this.building.delete(name);
    if (!this.recursive.has(name)) return schema;
    this.defs[name] = schema;
    return reference;
  }

  /** An object's schema; only an input says that there is nothing else in it. */
  object(properties, required, other) {
    const schema = { type: "object", properties };
    if (required.length > 0) schema.required = [...new Set(required)];
    const additional = other ?? (this.output ? undefined : false);
    return additional === undefined ? schema : { ...schema, additionalProperties: additional };
  }

  /** The schema of a parameter or property, from its tag and from the dotted tags beneath it. */
  entry(tag, tags) {
    const whole = tag.name === "";
    const inside = (name) => whole || name.startsWith(`${tag.name}.`) || name.startsWith(`${tag.name}[].`);
    const tail = (name) => (whole ? name : name.slice(tag.name.length).replace(/^(\[\])?\./, ""));
    const below = tags.filter((each) => each !== tag && inside(each.name)).map((each) => ({ ...each, name: tail(each.name) }));
    const schema = below.length > 0 ? this.parent(tag, below) : this.of(tag.type);
    return this.finish(schema, tag);
  }

  /** The schema of an object, or an array of objects, whose properties have tags of their own. */
  parent(tag, below) {
    const direct = below.filter(({ name }) => !/[.[]/.test(name));
    const properties = Object.fromEntries(direct.map((each) => [each.name, this.entry(each, below)]));
    const schema = this.object(properties, direct.filter(({ optional }) => !optional).map(({ name }) => name));
    const listed = /^[?!]?(Array\b|.*\[\]$)/.test(tag.type) ? arrayOf(schema) : schema;
    return /^\?|\bnull\b/.test(tag.type) ? anyOf([listed, NULL]) : listed;
  }

  /** Adds a tag's default and note to a schema. */
  finish(schema, { fallback, note }) {
    const made = { ...schema };
    const quoted = fallback !== undefined && /^(["']).*\1$/.test(fallback);
    const value = fallback === undefined || (schema.type === "string" && !quoted) ? fallback : literal(fallback);
    if (value !== undefined && fits(value, schema, this.defs)) made.default = value;
    if (note) made.description = note;
    return made;
  }
}

/** The schema of fixed values. */
function valuesOf(values) {
  const kinds = new Set(values.map((value) => (Number.isInteger(value) ? "integer" : typeof value)));
  return kinds.size === 1 && !kinds.has("object") ? { type: [...kinds][0], enum: values } : { enum: values };
}

/** A choice of schemas: nested choices made flat, fixed values of one type put together, doubles left out. */
function anyOf(schemas) {
  const choices = [];
  for (const schema of schemas.flatMap((each) => (isDeepStrictEqual(Object.keys(each), ["anyOf"]) ? each.anyOf : [each]))) {
    const peer = choices.findIndex((each) => schema.enum && each.enum && each.type === schema.type);
    if (peer >= 0) choices[peer] = { ...choices[peer], enum: [...new Set([...choices[peer].enum, ...schema.enum])] };
    else if (!choices.some((each) => isDeepStrictEqual(each, schema))) choices.push(schema);
  }
  if (choices.some((each) => Object.keys(each).length === 0)) return {};
  return choices.length === 1 ? choices[0] : { anyOf: choices };
}

/** An array's schema. */
function arrayOf(items) {
  return Object.keys(items).length > 0 ? { type: "array", items } : { type: "array" };
}

/** The schema of an object with any keys. */
function mapOf(values) {
  return Object.keys(values).length > 0 ? { type: "object", additionalProperties: values } : { type: "object" };
}

/** Whether a value satisfies one of our schemas. */
function fits(value, schema, defs) {
  if (schema.$ref) return fits(value, defs[schema.$ref.split("/").pop()] ?? {}, defs);
  if (schema.anyOf) return schema.anyOf.some((each) => fits(value, each, defs));
  if (schema.enum) return schema.enum.includes(value);
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (schema.type === "integer") return Number.isInteger(value);
  if (schema.type && schema.type !== kind) return false;
  if (kind === "array") {
    const size = schema.maxItems ?? value.length;
    return value.length === size && value.every((each, at) => fits(each, schema.prefixItems?.[at] ?? schema.items ?? {}, defs));
  }
  return kind !== "object" || fitsObject(value, schema, defs);
}

/** Whether an object has what its schema requires and nothing it forbids. */
function fitsObject(value, schema, defs) {
  const { properties = {}, required = [], additionalProperties: other = true } = schema;
  return (
    required.every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, each]) => {
      if (Object.hasOwn(properties, name)) return fits(each, properties[name], defs);
      return typeof other === "boolean" ? other : fits(each, other, defs);
    })
  );
}

// --- the input of a function ---

/** The input schema of a function and how it is called. */
function inputOf(parameters, tags, schemas) {
  const roots = tags.filter(({ name }) => !/[.[]/.test(name));
  const rest = parameters.find((each) => each.rest) ?? roots.find(({ type }) => type.startsWith("..."));
  if (rest) {
    throw new Refused(`The function takes ...${rest.name}, and an input object has no place for it.`, "Take one array parameter instead.");
  }
  if (parameters.length === 1) {
    const whole = wholeObject(parameters[0], roots, tags, schemas);
    if (whole) return { schema: closed(whole, schemas), call: callOf("object", whole) };
  }
  const properties = {};
  const required = [];
  parameters.forEach((parameter, at) => {
    const tag = roots.find(({ name }) => name === parameter.name) ?? (parameter.name ? undefined : roots[at]);
    const name = parameter.name ?? tag?.name ?? `arg${at + 1}`;
    properties[name] = withDefault(tag ? parameterSchema(tag, tags, schemas) : {}, parameter, schemas);
    if (!parameter.optional && !tag?.optional) required.push(name);
  });
  const schema = schemas.object(properties, required);
  return { schema: closed(schema, schemas), call: { ...callOf("positional", schema), names: Object.keys(properties) } };
}

/** One parameter's schema; a type without JSON form is refused by the parameter's name. */
function parameterSchema(tag, tags, schemas) {
  try {
    return schemas.entry(tag, tags);
  } catch (error) {
    const where = tag.name === "" ? "The parameter object" : `The parameter "${tag.name}"`;
    throw error instanceof NoJson ? refuseType(where, error.message) : error;
  }
}

/** A schema with the default the code itself gives. */
function withDefault(schema, parameter, schemas) {
  const stated = parameter.default !== undefined && fits(parameter.default, schema, schemas.defs);
  return stated ? { ...schema, default: parameter.default } : schema;
}

/** The schema of a lone parameter that takes the whole input object; undefined when it does not. */
function wholeObject(parameter, roots, tags, schemas) {
  const keys = parameter.keys?.filter((key) => !key.rest);
  const loose = keys && roots.length > 0 && roots.every(({ name }) => keys.some((key) => key.name === name));
  const tag = loose ? { type: "", name: "", optional: false } : roots.find(({ name }) => name === parameter.name) ?? roots[0];
  const made = tag ? schemas.expand(parameterSchema(tag, tags, schemas)) : {};
  const schema = made.anyOf ? schemas.expand(made.anyOf[0]) : made;
  if (!keys) return schema.properties ? schema : undefined;
  return fromPattern(keys, parameter.keys.some((key) => key.rest), schema, schemas);
}

/** The schema of a destructured parameter: its keys, with what the comment says of them. */
function fromPattern(keys, open, schema, schemas) {
  const properties = { ...schema.properties };
  let required = [...(schema.required ?? [])];
  for (const key of keys) {
    if (!Object.hasOwn(properties, key.name) && !key.optional) required.push(key.name);
    if (key.optional) required = required.filter((name) => name !== key.name);
    properties[key.name] = withDefault(properties[key.name] ?? {}, key, schemas);
  }
  return schemas.object(properties, required, open ? true : schema.additionalProperties);
}

/** An input schema complete with its definitions. */
function closed(schema, schemas) {
  return Object.keys(schemas.defs).length > 0 ? { ...schema, $defs: schemas.defs } : schema;
}

/** How the function is called; dates are the arguments that become Date objects. */
function callOf(style, schema) {
  const isDate = (each) => each.format === "date-time" || (each.anyOf ?? []).some(isDate);
  const dates = Object.keys(schema.properties).filter((name) => isDate(schema.properties[name]));
  return dates.length > 0 ? { style, dates } : { style };
}

/** The refusal of a type, with what to do instead. */
function refuseType(where, name) {
  const bytes = /Buffer|Array$|Blob|File|DataView/.test(name);
  const plain = "Use string, number, boolean, arrays, plain objects or a typedef of them.";
  const hint = bytes ? "Use a string, for instance base64 text." : plain;
  return new Refused(`${where} uses the type ${name}, which has no JSON form.`, hint);
}

/** The schema of the result, from @returns. */
function outputOf(tags, schemas) {
  const tag = tags.find(({ tag }) => tag === "returns" || tag === "return" || tag === "yields");
  if (!tag?.type) return {};
  try {
    const schema = schemas.of(tag.type);
    const made = tag.tag === "yields" && schema.type !== "array" ? arrayOf(schema) : schema;
    return closed(tag.after && Object.keys(made).length > 0 ? { ...made, description: tag.after } : made, schemas);
  } catch (error) {
    throw error instanceof NoJson ? refuseType("The result", error.message) : error;
  }
}

// --- sample input ---

/** A small value that satisfies a schema; filler stands where anything goes. */
function sample(schema, defs, filler, seen = []) {
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.$ref) {
    if (seen.includes(schema.$ref)) throw new Endless();
    return sample(defs[schema.$ref.split("/").pop()], defs, filler, [...seen, schema.$ref]);
  }
  if (schema.anyOf) return firstSample(schema.anyOf, defs, filler, seen);
  if (schema.type === "object") return sampleObject(schema, defs, filler, seen);
  if (schema.maxItems === 0) return [];
  if (schema.prefixItems) return schema.prefixItems.map((each) => sample(each, defs, filler, seen));
  if (schema.type === "array") return unlessEndless(() => [sample(schema.items ?? {}, defs, filler, seen)], []);
  if (schema.format === "date-time") return "2024-01-01T12:00:00.000Z";
  const plain = { string: "example", number: 1, integer: 1, boolean: true, null: null };
  return Object.hasOwn(plain, schema.type ?? "") ? plain[schema.type] : filler;
}

/** What is made, or something else when a type comes round again. */
function unlessEndless(make, otherwise) {
  try {
    return make();
  } catch (error) {
    if (error instanceof Endless) return otherwise;
    throw error;
  }
}

/** A sample of the first choice that ends, null last. */
function firstSample(choices, defs, filler, seen) {
  for (const choice of [...choices.filter(({ type }) => type !== "null"), ...choices.filter(({ type }) => type === "null")]) {
    const made = unlessEndless(() => [sample(choice, defs, filler, seen)], undefined);
    if (made) return made[0];
  }
  throw new Endless();
}

/** An object with what is required and what has a default; one entry in an open map. */
function sampleObject(schema, defs, filler, seen) {
  const entries = Object.entries(schema.properties ?? {})
    .filter(([name, each]) => schema.required?.includes(name) || (each.default ?? null) !== null)
    .map(([name, each]) => [name, sample(each, defs, filler, seen)]);
  const other = schema.properties ? undefined : schema.additionalProperties;
  const open = typeof other === "object" ? unlessEndless(() => [["example", sample(other, defs, filler, seen)]], []) : [];
  return Object.fromEntries([...entries, ...open]);
}

/** Where the first call of one of the names opens its parenthesis; -1 when there is none. */
function callIn(text, names) {
  const found = [...text.matchAll(/([\w$]+)\(/g)].find((match) => names.includes(match[1]));
  return found ? found.index + found[1].length : -1;
}

/** The input of the first @example that calls the function with literals that fit, if any. */
function exampleInput(tags, fn, name, { schema, call }) {
  for (const { text } of tags.filter(({ tag }) => tag === "example")) {
    const open = callIn(text, [name, fn.name]);
    const end = open < 0 ? -1 : closing(text, open);
    const values = end < 0 ? [undefined] : parts(text.slice(open + 1, end)).map(literal);
    if (values.includes(undefined)) continue;
    const named = values.map((value, index) => [call.names?.[index], value]);
    const given = call.style === "object" ? values[0] ?? {} : Object.fromEntries(named);
    if (fits(given, schema, schema.$defs ?? {})) return given;
  }
  return undefined;
}

/** The sample inputs to try, best first: the caller's, an example's, or made from the schema. */
function attempts(given, tags, fn, name, input) {
  const best = given ?? exampleInput(tags, fn, name, input);
  if (best !== undefined) return [best];
  const { schema } = input;
  const fill = (filler) => sampleObject(schema, schema.$defs ?? {}, filler, []);
  const made = unlessEndless(() => ["example", 1].map(fill), undefined);
  if (!made) throw new Refused("No sample input can be made: a type contains itself without end.", "Make the inner one optional.");
  return isDeepStrictEqual(made[0], made[1]) ? made.slice(0, 1) : made;
}

// --- loading ---

let crash = () => {};

/** Waits for work; an error thrown outside of it, in a callback, fails it too. */
function guarded(work) {
  const crashed = new Promise((_, fail) => {
    crash = fail;
  });
  return Promise.race([settled(work), crashed]);
}

/** Imports the file; every way to fail becomes a sentence. */
async function loadFile(file, source) {
  try {
    return await guarded(import(pathToFileURL(file).href));
  } catch (error) {
    const text = errorText(error).split("\n")[0].replace(/,? imported from .*$/, "");
    const unmarked = error instanceof SyntaxError && file.endsWith(".js") && isModule(source);
    const absent = error?.code === "ERR_MODULE_NOT_FOUND" || error?.code === "MODULE_NOT_FOUND";
    let hint = "The file must load without arguments or special surroundings.";
    if (absent) hint = "Install what it needs next to the file, with npm install.";
    if (unmarked) hint = 'Put "type": "module" into package.json, or name the file .mjs.';
    throw new Refused(`Importing ${basename(file)} failed: ${text}`, hint);
  }
}

/** The export to use: the one asked for, the only function, or the default. */
function pick(loaded, wanted, file) {
  const found = exportsOf(loaded);
  const names = [...found.keys()].filter((name) => !/^class\b/.test(found.get(name)[name].toString()));
  const list = `It exports: ${names.join(", ") || "no functions"}.`;
  const base = basename(file);
  if (wanted !== undefined && !names.includes(wanted)) throw new Refused(`${base} exports no function "${wanted}".`, list);
  if (names.length === 0) throw new Refused(`${base} exports no function.`, "Export one, as in `export function add(a, b) {}`.");
  const different = new Set(names.map((name) => found.get(name)[name]));
  const named = names.find((name) => name !== "default") ?? "default";
  const name = wanted ?? (different.size === 1 ? named : names.find((each) => each === "default"));
  if (name === undefined) {
    throw new Refused(`${base} exports several functions: ${names.join(", ")}.`, `Say which, as in ${base}:${names[0]}.`);
  }
  return { name, holder: found.get(name) };
}

/** The file, if it is one that can be loaded. */
function checkedFile(path) {
  const file = resolve(path);
  const usual = "Name a .js, .mjs or .cjs file.";
  if (!existsSync(file) || !statSync(file).isFile()) throw new Refused(`There is no file ${path}.`, usual);
  const typed = /\.[cm]?tsx?$/.test(file);
  const hint = typed ? "Compile it to JavaScript first." : usual;
  if (!/\.[cm]?js$/.test(file)) throw new Refused(`${basename(file)} is not a JavaScript file.`, hint);
  return file;
}

// --- the report ---

/** The outcome of calling twice: the result and whether it repeats, or the error. */
async function tryCall({ holder, name }, call, given) {
  const once = async () => JSON.parse(await guarded(callTool(holder, name, call, structuredClone(given))));
  let result;
  try {
    result = await once();
  } catch (error) {
    return { call_error: errorText(error) };
  }
  try {
    return { result, deterministic: isDeepStrictEqual(result, await once()) };
  } catch {
    return { result, deterministic: false };
  }
}

/** The first attempt that works with its outcome, else the first attempt with its error. */
async function bestCall(picked, call, tries) {
  let first;
  for (const given of tries) {
    const outcome = await tryCall(picked, call, given);
    first ??= { given, outcome };
    if (!("call_error" in outcome)) return { given, outcome };
  }
  return first;
}

/** The parameters of a function; where its own text does not name them, as in a wrapper, those of its comment. */
function knownParameters(fn, tags) {
  const roots = tags.filter(({ name }) => !/[.[]/.test(name));
  const own = parametersOf(fn);
  const rest = own?.find((each) => each.rest);
  const wrapped = rest && roots.length > 0 && !roots.some(({ name, type }) => name === rest.name || type.startsWith("..."));
  const known = own && !wrapped ? own : roots;
  if (known.length === 0 && fn.length > 0) {
    throw new Refused("The function's parameters cannot be read.", "Wrap it in a function with named parameters.");
  }
  return known.map(({ name, keys, optional, rest, default: value }) => ({ name, keys, optional, rest, default: value }));
}

/** The whole report on one function. */
async function describe({ values, positionals }) {
  if (positionals.length !== 1) throw new Refused("The command line is wrong: exactly one file is needed.");
  const given = readObject(values.input);
  const file = checkedFile(positionals[0]);
  const sources = sourcesFrom(file);
  const type = moduleType(file, sources);
  const picked = pick(await loadFile(file, sources.get(file)), values.export, file);
  const fn = picked.holder[picked.name];
  const stem = basename(file, extname(file));
  const name = [picked.name, fn.name, stem].find((each) => each && each !== "default" && each !== "module.exports");
  const { lead, tags } = parseComment(commentAbove(sources, fn, name));
  const typedefs = typedefsIn(sources);
  const warnings = [];
  const open = tags.filter(({ tag }) => tag === "template").flatMap(({ text }) => text.match(/[\w$]+/g) ?? []);
  const params = tags.filter(({ tag }) => /^(param|arg|argument)$/.test(tag));
  const input = inputOf(knownParameters(fn, params), params, new Schemas(typedefs, { open, warnings }));
  const output = outputOf(tags, new Schemas(typedefs, { output: true, open, warnings }));
  const tries = attempts(given, tags, fn, name, input);
  const called = values.call ? await bestCall(picked, input.call, tries) : { given: tries[0], outcome: {} };
  const root = commonFolder([...sources.keys()]);
  return {
    ok: true, name, module: stem, file: within(root, file), export: picked.name, call: input.call, type,
    root: within(dirname(file), root), files: [...sources.keys()].map((path) => within(root, path)).sort(),
    packages: packagesOf(sources), warnings: [...new Set(warnings)],
    summary: lead.split("\n")[0], description: lead,
    input_schema: input.schema, output_schema: output, sample_input: called.given, ...called.outcome,
  };
}

/** The input object given on the command line, if any. */
function readObject(text) {
  if (text === undefined) return undefined;
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    given = null;
  }
  const fine = given !== null && typeof given === "object" && !Array.isArray(given);
  if (!fine) throw new Refused("The value of --input is not a JSON object.", "For instance --input '{\"a\": 1}'.");
  return given;
}

/** The command line; a wrong one is a refusal like any other. */
function readOptions() {
  const options = { export: { type: "string" }, call: { type: "boolean" }, input: { type: "string" } };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Refused(`The command line is wrong: ${error.message}`);
  }
}

/** The report, or the reason why there is none. */
async function report() {
  try {
    return await describe(readOptions());
  } catch (error) {
    if (error instanceof Refused) return { ok: false, error: error.message, hint: error.hint };
    return { ok: false, error: `The function cannot be described: ${errorText(error)}`, hint: "" };
  }
}

const exit = process.exit.bind(process);
const print = process.stdout.write.bind(process.stdout);

// Stdout is kept for the report: what the module prints goes to stderr, and it may not end the process.
process.stdout.write = process.stderr.write.bind(process.stderr);
process.exit = (code = 0) => {
  throw new Error(`process.exit(${code}) was called`);
};
process.on("uncaughtException", (error) => crash(error));
report().then((made) => print(`${JSON.stringify(made)}\n`, () => exit(made.ok ? 0 : 1)));
