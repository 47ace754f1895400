import { entityTag } from './entity-tag.js';
import { writeJson } from './json-writer.js';

/** A JSON body that is written and hashed once, however many answers it is sent in. Handlers may return one. */
export class JsonBody {
  /** The JSON text. */
  readonly text: string;
  private tag: string | undefined;

  constructor(value: unknown) {
    this.text = writeJson(value);
  }

  /** The weak entity tag of the text. */
  get entityTag(): string {
    return (this.tag ??= entityTag(this.text));
  }
}
