/** Keywords of a schema that do not affect which values are valid. */
const ANNOTATIONS = ['title', 'description', 'example', 'examples', 'deprecated', '$comment'];

/**
 * What the client must know of the document, one line each: operations with their parameters, bodies, statuses and header fields,
 * then the members of each schema and the values of each header field. Texts and examples are left out.
 */
export function surfaceOf(document) {
  const { schemas = {}, headers = {} } = document.components ?? {};
  const of = (node) => (node?.$ref === undefined ? node : stepsOf(node.$ref).reduce((at, step) => at[step], document));
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, { operationId } = {}]) => operationId !== undefined)
      .flatMap(([method, operation]) => linesOfOperation(`${method.toUpperCase()} ${path}`, operation, of)),
  );
  return [
    ...operations,
    ...Object.entries(schemas).flatMap(([name, schema]) => linesOfSchema(`schema ${name}`, schema)),
    ...Object.entries(headers).map(([name, header]) => entry(`header ${name}`, header.required, header.schema)),
  ];
}

/** The names of parameters in queries and header fields that the source of the client does not contain. */
export function unsentParameters(document, source, elsewhere) {
  const code = source.replace(/\/\*.*?\*\/|\/\/.*$/gms, '').toLowerCase();
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const parameters = operations.flatMap(({ parameters = [] }) => parameters).filter((one) => one.in !== 'path');
  const names = new Set(parameters.map(({ name }) => name));
  return [...names].filter((name) => !elsewhere.includes(name) && !code.includes(`'${name.toLowerCase()}'`));
}

function linesOfOperation(endpoint, operation, of) {
  const { operationId, parameters = [], requestBody, responses } = operation;
  const body = of(requestBody);
  return [
    `${operationId} ${endpoint}`,
    ...parameters
      .map(of)
      .map(({ name, in: location, required, schema }) => entry(`${operationId} ${location} ${name}`, required, schema)),
    ...Object.entries(body?.content ?? {}).map(([type, { schema }]) =>
      entry(`${operationId} body ${type}`, body.required, schema),
    ),
    ...Object.entries(responses).flatMap(([status, response]) => {
      const { content = {}, headers = {} } = of(response);
      const here = `${operationId} ${status}`;
      const fields = Object.entries(headers).map(([name, { $ref }]) => {
        const component = $ref && stepsOf($ref).at(-1);
        return component === undefined || component === name ? name : `${name} (${component})`;
      });
      return [
        `${here} header ${fields.join(', ')}`,
        ...Object.entries(content).map(([type, { schema }]) => entry(`${here} body ${type}`, true, schema)),
      ];
    }),
  ];
}

function linesOfSchema(where, { properties, required = [], ...others }) {
  const members = Object.entries(properties ?? {});
  return [
    entry(where, true, others),
    ...members.map(([name, schema]) => entry(`${where}.${name}`, required.includes(name), schema)),
  ];
}

function entry(where, isRequired, schema) {
  return `${where}${isRequired ? '' : '?'}: ${shown(schema)}`;
}

/** The keywords of a schema that matter, as JSON; of a bare reference only the name. */
function shown(schema) {
  const text = JSON.stringify(schema ?? {}, (key, value) =>
    // A member may be named as an annotation is.
    ANNOTATIONS.includes(key) && (typeof value !== 'object' || Array.isArray(value)) ? undefined : value,
  );
  return text.replace(/^\{"\$ref":"[^"]*\/([^"/]*)"\}$/, '$1');
}

function stepsOf(reference) {
  return reference
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}
