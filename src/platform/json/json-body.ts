import { entityTag } from './entity-tag.js';
import { type JsonValue, readOwnJson } from './reader/json-reader.js';
import { writeJson } from './json-writer.js';

/** The bodies of values that several answers share. */
const shared = new WeakMap<object, JsonBody>();

/** A JSON body. Its text and its entity tag are made once, however many answers send it. Handlers may return one. */
export class JsonBody {
  private tag: string | undefined;

  /** @param text JSON text */
  constructor(readonly text: string) {}

  /** The body of a value, by the rules of `writeJson`. */
  static of(value: unknown): JsonBody {
    return new JsonBody(writeJson(value));
  }

  /**
   * The body of an object that several answers share and nobody changes. Every call for the object gives the same body.
   *
   * @param write makes the JSON text of the object
   */
  static shared<Value extends object>(value: Value, write: (value: Value) => string = writeJson): JsonBody {
    let body = shared.get(value);
    if (body === undefined) {
      body = new JsonBody(write(value));
      shared.set(value, body);
    }
    return body;
  }

  /** The value that the text stands for, a new one with each call: also what a `JsonBody` inside of an answer is written as. */
  toJSON(): JsonValue {
    return readOwnJson(this.text);
  }

  /** The weak entity tag of the text. */
  get entityTag(): string {
    return (this.tag ??= entityTag(this.text));
  }
}
