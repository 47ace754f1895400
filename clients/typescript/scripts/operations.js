/** The operationIds of the document for which the source of the client declares no method of that name. */
export function operationsWithoutMethod(document, source) {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const ids = operations.flatMap((operation) => operation.operationId ?? []);
  return ids.filter((id) => !new RegExp(`^  (async )?\\*?${id}\\(`, 'm').test(source));
}
