import { isDeepStrictEqual } from 'node:util';

/** Keywords that do not affect which values are valid (JSON Schema 2020-12). Those with `x-…` do not either. */
const ANNOTATIONS = new Set([
  ...['title', 'description', 'example', 'examples', 'deprecated', 'default', 'readOnly', 'writeOnly', '$comment'],
]);
const LOWER_BOUNDS = new Set(['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']);
const UPPER_BOUNDS = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']);
/** Limits of a value: in a response, a client that does not check them goes on when they are wider. */
const isLimit = (keyword) => LOWER_BOUNDS.has(keyword) || UPPER_BOUNDS.has(keyword) || keyword === 'pattern';
/** Keywords for which `compareSchemas` has separate rules. */
const STRUCTURE = new Set(['type', 'enum', 'required', 'properties', 'items']);
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/**
 * The changes from a released OpenAPI 3.1 document to the current one that clients of the released one may notice: one line
 * each, which names the operation and the place.
 *
 * `breaking`: such a client fails.
 * - Removed: a server, an operation, a parameter, a body, a media type, a response, an error code, a response header, a member.
 * - Changed: an operationId, the security of an operation, the scopes that it needs, a sunset that is earlier.
 * - Requests: a new required parameter, body or member; values that are refused (type, format, enum, bounds, pattern);
 *   another default.
 * - Responses: another type or format, a new value of an enumeration; a member or header that may be missing.
 * - A keyword that the check does not know.
 *
 * `widening`: the value of a response may be longer, larger or of another pattern. A client fails only if it checks the old
 * limit itself, for example by the size of a column.
 */
export function contractChanges(released, current) {
  return new Comparison(released, current).run();
}

/** The operations that `current` has beside those of `before`, with their scopes: one line each. */
export function addedOperations(before, current) {
  return Object.entries(current.paths).flatMap(([path, operations]) =>
    METHODS.filter((method) => method in operations && !(method in (before.paths[path] ?? {}))).map((method) => {
      const scopes = operations[method]['x-required-scopes'];
      return `${method.toUpperCase()} ${path}: ${scopes ? `open to every key with ${scopes.join(', ') || 'any scope'}` : 'needs no key'}`;
    }),
  );
}

/**
 * Compares the breaking changes with those that a list accepts.
 *
 * @param accepted the entries of openapi.accepted.json
 * @returns `refused`: breaking changes without an entry; `faults`: what is wrong with the entries, one sentence each
 */
export function judgeChanges(breaking, accepted) {
  const listed = accepted.flatMap(({ changes = [] }) => changes);
  const faults = accepted.flatMap(({ version, reason, changes = [] }, index) => [
    ...(/^\d+\.\d+\.\d+$/.test(version)
      ? []
      : [`entry ${index + 1} needs the version of the release that has it, such as "2.1.0"`]),
    ...(typeof reason === 'string' && reason.trim() !== '' ? [] : [`entry ${index + 1} needs a reason`]),
    ...without(changes, breaking).map((change) => `no such change, so remove the line: ${change}`),
  ]);
  return { refused: without(breaking, listed), faults };
}

class Comparison {
  breaking = [];
  widening = [];
  /** Pairs of references that are being compared, because schemas may be recursive. */
  open = new Set();

  constructor(released, current) {
    this.released = released;
    this.current = current;
  }

  run() {
    const [before, after] = [this.released, this.current].map(({ servers = [] }) => servers.map(({ url }) => url));
    for (const url of without(before, after)) this.report(`server ${url}`, 'removed');
    for (const [path, operations] of Object.entries(this.released.paths)) {
      for (const method of METHODS.filter((name) => name in operations)) {
        const where = `${method.toUpperCase()} ${path}`;
        const operation = this.current.paths[path]?.[method];
        if (operation === undefined) this.report(where, 'removed');
        else this.compareOperations(where, operations[method], operation);
      }
    }
    return { breaking: this.breaking, widening: this.widening };
  }

  compareOperations(where, released, current) {
    this.compareValues(where, 'operationId', released.operationId, current.operationId);
    const [before, after] = [released.security ?? this.released.security, current.security ?? this.current.security];
    this.compareValues(where, 'security', before, after);
    for (const name of new Set((before ?? []).flatMap(Object.keys))) {
      const [one, other] = [this.released, this.current].map(({ components }) => components?.securitySchemes?.[name]);
      for (const keyword of new Set(Object.keys({ ...one, ...other }).filter((key) => !isAnnotation(key)))) {
        this.compareValues(where, `${keyword} of the security scheme ${name}`, one?.[keyword], other?.[keyword]);
      }
    }
    for (const scope of without(current['x-required-scopes'] ?? [], released['x-required-scopes'] ?? [])) {
      this.report(where, `needs the scope ${scope}`);
    }
    const [sunset, earlier] = [released['x-sunset'], current['x-sunset']];
    if (earlier < sunset) this.report(where, `sunset was ${sunset}, is ${earlier}`);
    this.compareParameters(where, released.parameters, current.parameters);
    this.compareRequestBodies(`${where}, request body`, released.requestBody, current.requestBody);
    for (const [status, response] of Object.entries(released.responses)) {
      const here = `${where}, response ${status}`;
      const other = current.responses[status];
      if (other === undefined) this.report(here, 'removed');
      else this.compareResponses(here, this.of(this.released, response), this.of(this.current, other));
    }
  }

  compareParameters(where, released = [], current = []) {
    const nameOf = (parameter) => `${parameter.in} parameter ${parameter.name}`;
    const before = new Map(released.map((one) => this.of(this.released, one)).map((one) => [nameOf(one), one]));
    const after = new Map(current.map((one) => this.of(this.current, one)).map((one) => [nameOf(one), one]));
    for (const [name, parameter] of before) {
      const other = after.get(name);
      if (other === undefined) this.report(`${where}, ${name}`, 'removed');
      else this.compareInputs(`${where}, ${name}`, parameter, other);
    }
    for (const [name, { required }] of after) {
      if (required && !before.has(name)) this.report(`${where}, ${name}`, 'is new and required');
    }
  }

  compareRequestBodies(where, released, current) {
    if (released === undefined) {
      if (this.of(this.current, current)?.required) this.report(where, 'is new and required');
      return;
    }
    const [before, after] = [this.of(this.released, released), this.of(this.current, current)];
    if (after === undefined) return this.report(where, 'removed');
    if (after.required && !before.required) this.report(where, 'is required and was not');
    this.eachMediaType(where, before, after, (here, one, other) => this.compareInputs(here, one, other));
  }

  compareInputs(where, released, current) {
    if (current.required && !released.required) this.report(where, 'is required and was not');
    this.compareSchemas(where, released.schema, current.schema, 'request');
  }

  compareResponses(where, released, current) {
    for (const [name, header] of Object.entries(released.headers ?? {})) {
      const here = `${where}, header ${name}`;
      const other = current.headers?.[name];
      if (other === undefined) this.report(here, 'removed');
      else this.compareOutputs(here, this.of(this.released, header), this.of(this.current, other));
    }
    this.eachMediaType(where, released, current, (here, one, other) => {
      this.compareOutputs(here, one, other);
      // The examples of an error are named by its code.
      const codes = Object.values(one.examples ?? {}).map((example) => this.of(this.released, example).value?.code);
      const names = Object.keys(one.examples ?? {}).filter((name, index) => name === codes[index]);
      for (const code of without(names, Object.keys(other.examples ?? {}))) this.report(here, `error ${code} removed`);
    });
  }

  compareOutputs(where, released, current) {
    if (released.required && !current.required) this.report(where, 'may be missing and could not');
    this.compareSchemas(where, released.schema, current.schema, 'response');
  }

  eachMediaType(where, released, current, compare) {
    const types = Object.entries(released.content ?? {});
    for (const [type, media] of types) {
      const here = types.length === 1 ? where : `${where}, ${type}`;
      const other = current.content?.[type];
      if (other === undefined) this.report(`${where}, ${type}`, 'removed');
      else compare(here, media, other);
    }
  }

  /** @param direction `request`: the current values must include the released ones; `response`: the other way round */
  compareSchemas(where, released, current, direction) {
    const pair = `${released?.$ref} ${current?.$ref} ${direction}`;
    if (this.open.has(pair)) return;
    if (released?.$ref !== undefined || current?.$ref !== undefined) this.open.add(pair);
    const before = this.of(this.released, released ?? {});
    const after = this.of(this.current, current ?? {});
    const isRequest = direction === 'request';
    const [inner, outer] = isRequest ? [before, after] : [after, before];

    const types = typesOf(outer);
    const isWider = (type) => types.has(type) || (type === 'integer' && types.has('number'));
    if (types.size > 0 && (typesOf(inner).size === 0 || ![...typesOf(inner)].every(isWider))) {
      this.reportKeyword(where, 'type', before, after);
    }
    if (outer.enum && !(inner.enum && inner.enum.every((value) => outer.enum.includes(value)))) {
      this.reportKeyword(where, 'enum', before, after);
    }
    if (isRequest) this.compareValues(where, 'default', before.default, after.default);
    for (const keyword of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (!isAnnotation(keyword) && !STRUCTURE.has(keyword) && !isWithin(keyword, inner[keyword], outer[keyword])) {
        const list = !isRequest && isLimit(keyword) ? this.widening : this.breaking;
        this.reportKeyword(where, keyword, before, after, list);
      }
    }
    this.compareMembers(where, before, after, direction);
    if (before.items || after.items) this.compareSchemas(`${where}, items`, before.items, after.items, direction);
    this.open.delete(pair);
  }

  compareMembers(where, before, after, direction) {
    for (const [name, schema] of Object.entries(before.properties ?? {})) {
      const here = `${where}, member ${name}`;
      const other = after.properties?.[name];
      if (other === undefined) this.report(here, 'removed');
      else this.compareSchemas(here, schema, other, direction);
    }
    const [earlier, later] = [before.required ?? [], after.required ?? []];
    const isRequest = direction === 'request';
    // Removed members of a response have been reported already.
    const names = isRequest
      ? without(later, earlier)
      : without(earlier, later).filter((name) => name in (after.properties ?? {}));
    const what = isRequest ? 'is required and was not' : 'may be missing and could not';
    for (const name of names) this.report(`${where}, member ${name}`, what);
  }

  /** A node of a document with its reference resolved. Members beside `$ref` count (OpenAPI 3.1). */
  of(document, node) {
    if (node?.$ref === undefined) return node;
    const { $ref, ...beside } = node;
    const steps = $ref.split('/').slice(1);
    const target = steps.reduce((at, step) => at[step.replaceAll('~1', '/').replaceAll('~0', '~')], document);
    return { ...this.of(document, target), ...beside };
  }

  compareValues(where, what, before, after, list) {
    if (!isDeepStrictEqual(before, after)) this.report(where, `${what} was ${shown(before)}, is ${shown(after)}`, list);
  }

  reportKeyword(where, keyword, before, after, list) {
    this.compareValues(where, keyword, before[keyword], after[keyword], list);
  }

  report(where, what, list = this.breaking) {
    list.push(`${where}: ${what}`);
  }
}

/** The names that occur only in the first list. */
function without(names, others) {
  return names.filter((name) => !others.includes(name));
}

function typesOf({ type }) {
  return new Set(type === undefined ? [] : [type].flat());
}

function isAnnotation(keyword) {
  return ANNOTATIONS.has(keyword) || keyword.startsWith('x-');
}

/** Whether `outer` allows every value that `inner` allows; undefined allows every value. */
function isWithin(keyword, inner, outer) {
  if (outer === undefined && (LOWER_BOUNDS.has(keyword) || UPPER_BOUNDS.has(keyword))) return true;
  if (LOWER_BOUNDS.has(keyword)) return inner >= outer;
  if (UPPER_BOUNDS.has(keyword)) return inner <= outer;
  if (outer === undefined && (keyword === 'format' || keyword === 'pattern')) return true;
  return isDeepStrictEqual(inner, outer);
}

function shown(value) {
  return value === undefined ? 'none' : JSON.stringify(value);
}
