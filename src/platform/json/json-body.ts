import { entityTag } from './entity-tag.js';
import { writeJson } from './json-writer.js';

/** A JSON body that is written and hashed once, however many answers it is sent in. Handlers may return one. */
export class JsonBody {
  private tag: string | undefined;

  /** @param text JSON text */
  constructor(readonly text: string) {}

  /** The body of a value, by the rules of `writeJson`. */
  static of(value: unknown): JsonBody {
    return new JsonBody(writeJson(value));
  }

  /** The weak entity tag of the text. */
  get entityTag(): string {
    return (this.tag ??= entityTag(this.text));
  }
}
