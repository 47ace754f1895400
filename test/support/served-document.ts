import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { HttpAnswer } from './http-client.js';

/** A part of an OpenAPI document. */
interface Node {
  readonly $ref?: string;
  readonly required?: boolean;
  readonly schema?: { readonly type?: string };
  readonly headers?: Record<string, Node>;
  readonly content?: Record<string, { readonly schema: object; readonly examples: object }>;
}

interface Document {
  readonly paths: Record<string, Record<string, { readonly responses: Record<string, Node> }>>;
  readonly components: object;
}

/** Header fields with a meaning for clients: a response may have only those that are documented for it. */
const MEANINGFUL_HEADERS = (
  'accept allow cache-control deprecation etag idempotent-replayed link location retry-after sunset ' +
  'vary www-authenticate x-request-id'
).split(' ');

/** The OpenAPI document of a service, with which responses are compared. */
export class ServedDocument {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly document: Document;

  constructor(text: string) {
    // With absolute references, every schema of it can be compiled by itself.
    this.document = JSON.parse(text.replaceAll('"#/', '"document#/')) as Document;
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'document', components: this.document.components });
  }

  /** Differences between a response of an operation and the document; empty if there are none. */
  faultsOf([path, method]: readonly [path: string, method: string], answer: HttpAnswer, hasBody = true): string[] {
    const responses = this.document.paths[path]?.[method]?.responses ?? {};
    const response = this.resolve(responses[answer.status] ?? responses.default);
    if (response === undefined) return [`the status ${answer.status} is not documented`];
    const headers = new Map<string, Node | undefined>();
    for (const [name, header] of Object.entries(response.headers ?? {}))
      headers.set(name.toLowerCase(), this.resolve(header));
    const unknown = MEANINGFUL_HEADERS.filter((name) => name in answer.headers && !headers.has(name));
    const faults = unknown.map((name) => `${name} is not documented`);
    for (const [name, { required, schema = {} } = {}] of headers) {
      const text = answer.headers[name];
      if (text !== undefined) faults.push(...this.check(name, schema, schema.type === 'integer' ? Number(text) : text));
      else if (required) faults.push(`${name} is missing`);
    }
    const content = response.content?.['application/json'];
    if (content === undefined || !hasBody) return answer.text === '' ? faults : [...faults, 'it has a body'];
    const body = JSON.parse(answer.text) as { code: string };
    faults.push(...this.check('the body', content.schema, body));
    if (answer.headers['content-type'] !== 'application/json') faults.push('its Content-Type is not that of JSON');
    if (answer.status >= 400 && !(body.code in content.examples))
      faults.push(`the code ${body.code} is not documented`);
    return faults;
  }

  private check(what: string, schema: object, value: unknown): string[] {
    return this.ajv.validate(schema, value) ? [] : [`${what}: ${this.ajv.errorsText()}`];
  }

  private resolve(node: Node | undefined): Node | undefined {
    const steps = node?.$ref?.split('/').slice(1);
    if (steps === undefined) return node;
    return steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], this.document) as Node;
  }
}
