// Counts what a text is made of; the input JSON is the last argument, or comes on stdin.
import { readFileSync } from "node:fs";

const given = process.argv.length > 2 ? process.argv.at(-1) : readFileSync(0, "utf8");
const { text } = JSON.parse(given);
const words = text.match(/[\p{Letter}\p{Number}]+/gu) ?? [];
const longest = words.reduce((best, word) => ([...word].length > [...best].length ? word : best), "");
const lines = text === "" ? 0 : text.split("\n").length;
console.log(JSON.stringify({ lines, words: words.length, characters: [...text].length, longest }));
