import { hash } from 'node:crypto';
import { type JsonValue, readOwnJson } from './json-reader.js';
import { writeJson } from './json-writer.js';

/** By value: the bodies that several answers share. */
const shared = new WeakMap<object, JsonBody>();

/** A JSON body, which handlers may return. Text and entity tag are made once, even if several answers share the body. */
export class JsonBody {
  private tag: string | undefined;

  /** @param text JSON text */
  constructor(readonly text: string) {}

  /** The body of a value, by the rules of `writeJson`. */
  static of(value: unknown): JsonBody {
    return new JsonBody(writeJson(value));
  }

  /**
   * The body of an object that several answers share and that must not change. Calls with the same object return the same
   * body.
   *
   * @param write makes the JSON text of the object
   */
  static shared<Value extends object>(value: Value, write: (value: Value) => string = writeJson): JsonBody {
    let body = shared.get(value);
    if (body === undefined) {
      body = new JsonBody(write(value));
      body.tag = entityTag(body.text);
      shared.set(value, body);
    }
    return body;
  }

  /** Parses the text; each call returns a new value. `writeJson` calls it for a `JsonBody` inside of another value. */
  toJSON(): JsonValue {
    return readOwnJson(this.text);
  }

  /** The weak entity tag of the text. */
  get entityTag(): string {
    return (this.tag ??= entityTag(this.text));
  }
}

/** A weak entity tag (RFC 9110, section 8.8.3) of a representation: the same bytes give the same tag on every instance. */
export function entityTag(body: string): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}
