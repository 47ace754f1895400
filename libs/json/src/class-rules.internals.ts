import { getMetadataStorage, ValidateBy, ValidateNested } from 'class-validator';
import type { Reach } from '#runtime';

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

export const CLASS_RULES: Reach = {
  dependency: 'class-validator',
  touches: '`getMetadataStorage().getTargetValidationMetadatas`, and of its rules `type`',
  why: 'The rules of a class, in their order: input is checked, and responses are written, by them.',
  check() {
    const rule = (context: number): PropertyDecorator =>
      ValidateBy({ name: 'trial', validator: { validate: () => true } }, { context });
    class Ancestor {
      @rule(1) first: unknown;
      @rule(2) second: unknown;
    }
    class Trial extends Ancestor {
      @rule(3) third: unknown;
      @rule(4) declare second: unknown;
    }
    class Nesting {
      @ValidateNested() member: unknown;
    }
    const nested = rulesOf(Nesting).map(({ propertyName, type }) => `${propertyName} ${type}`);
    if (nested.join() !== 'member nestedValidation') return `@ValidateNested() comes back as '${nested.join()}'`;
    const read = rulesOf(Trial).map(({ name, propertyName, context }) => `${name} ${propertyName} ${String(context)}`);
    const declared = 'trial first 1, trial third 3, trial second 4';
    return read.join(', ') === declared ? undefined : `the rules ${declared} come back as ${read.join(', ') || 'none'}`;
  },
};
