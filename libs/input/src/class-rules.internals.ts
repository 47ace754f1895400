import { getMetadataStorage } from 'class-validator';

/** A rule of class-validator for a member of a class. */
export interface ClassRule {
  /** That of `ValidateBy({ name })`. */
  readonly name?: string | undefined;
  readonly propertyName: string;
  /** `nestedValidation` for `@ValidateNested()`. */
  readonly type: string;
  /** That of the rule's options. */
  readonly context?: unknown;
}

/**
 * The rules of class-validator of a class: those of its ancestors first, each in the order of its definition. A rule of the class
 * replaces that of an ancestor for the same member.
 */
export function rulesOf(type: object): ClassRule[] {
  const rules = getMetadataStorage().getTargetValidationMetadatas(type as () => unknown, '', true, false);
  // class-validator lists the class's own rules first.
  const isOwn = ({ target }: { target: unknown }): boolean => target === type;
  return [...rules.filter((rule) => !isOwn(rule)), ...rules.filter(isOwn)];
}

/** Calls `listen` for each rule that a class gets: of a decorator, or copied by `PartialType` and the like, which run no decorator. */
export function onRule(listen: (rule: ClassRule, type: { readonly prototype: object }) => void): void {
  const storage = getMetadataStorage();
  const add = storage.addValidationMetadata.bind(storage);
  storage.addValidationMetadata = (rule) => {
    // Before others listen: copies of this module share the storage, and the one loaded last is in use.
    if (typeof rule.target === 'function') listen(rule, rule.target);
    add(rule);
  };
}
