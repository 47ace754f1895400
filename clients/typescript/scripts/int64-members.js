/**
 * The sorted names of the members that are int64 or arrays of int64. The client recognises them only by name.
 *
 * @throws Error when a name is int64 in one schema and not in another, or when an array of int64 is not a member
 */
export function int64MembersOf(document) {
  const isInt64 = new Map();
  const visit = (node, path, isMember = false) => {
    if (node === null || typeof node !== 'object') return;
    if (node.items?.format === 'int64' && !isMember) {
      throw new Error(`${path}: an array of int64 is supported as a member of an object alone`);
    }
    for (const [name, schema] of Object.entries(node.properties ?? {})) {
      const here = (schema.items ?? schema).format === 'int64';
      if ((isInt64.get(name) ?? here) !== here) throw new Error(`${name} is int64 in one schema and not in another`);
      isInt64.set(name, here);
      visit(schema, `${path}/properties/${name}`, true);
    }
    for (const [key, child] of Object.entries(node)) {
      // Parameters are not sent as JSON.
      if (key !== 'properties' && key !== 'parameters') visit(child, `${path}/${key}`);
    }
  };
  visit(document, '#');
  return [...isInt64]
    .filter(([, is]) => is)
    .map(([name]) => name)
    .sort();
}
