// Gives a message back; the input JSON is the last argument, or comes on stdin.
import { readFileSync } from "node:fs";

const text = process.argv.length > 2 ? process.argv.at(-1) : readFileSync(0, "utf8");
console.log(JSON.stringify({ message: JSON.parse(text).message }));
