import type { OperationTraits } from './responses/operation-traits.js';

/** Assigns the operationIds of all paths of the handlers. */
export class OperationIds {
  private readonly used = new Set<string>();
  private readonly owners: ReadonlyMap<string, OperationTraits>;

  constructor(handlers: readonly OperationTraits[]) {
    this.owners = new Map(handlers.map((traits) => [traits.name, traits]));
  }

  /**
   * The id for a handler's next path. It is the name of the operation, followed by the method for `@All()`, by the version if
   * it is not the handler's first one, and by a number for further paths.
   */
  next(traits: OperationTraits, method: string, version: unknown): string {
    const suffixes = [
      ...(traits.isOfAllMethods ? [method] : []),
      ...(traits.versions.indexOf(version) > 0 ? [`v${String(version)}`] : []),
    ];
    const base = [traits.name, ...suffixes].join('_');
    let id = base;
    for (let number = 2; this.used.has(id) || (this.owners.get(id) ?? traits) !== traits; number++) {
      id = `${base}_${number}`;
    }
    this.used.add(id);
    return id;
  }
}
