import { PartialType } from '@nestjs/swagger';
import { ValidateBy } from 'class-validator';
import { declareJson, findMembersBy } from '#json';
import { documentedMembers } from './documented-members.internals.js';
import { onRule, rulesOf } from './class-rules.internals.js';
import { misfit } from '#runtime';

/** The name of the rule of class-validator at a member of a class that declares its members. */
export const DECLARED = 'checkedProperty';

/**
 * The names of the members that a class declares: those of the document, in its order, then those that only our decorators name.
 * A class of @nestjs/mapped-types, which has no members in the document, declares those that have a rule.
 */
export function declaredMembers(type: { readonly prototype: object }): string[] {
  const documented = documentedMembers(type);
  const rules = rulesOf(type).filter(({ name }) => documented.length === 0 || name === DECLARED);
  return [...new Set([...documented, ...rules.map(({ propertyName }) => propertyName)])];
}

findMembersBy((type) => (rulesOf(type).some(({ name }) => name === DECLARED) ? declaredMembers(type) : undefined));

// For `JSON.stringify`, with which Nest writes events and streamed values.
onRule(({ name }, type) => {
  if (name === DECLARED) declareJson(type.prototype);
});

/** @throws StartupError when a class made of another one would keep undeclared members in events and streamed values */
export function checkDeclaredJson(): void {
  class Trial {
    @ValidateBy({ name: DECLARED, validator: { validate: () => true } }) member: unknown;
  }
  const text = JSON.stringify(Object.assign(new (PartialType(Trial))(), { other: 1 }));
  if (text !== '{}') throw misfit('@nestjs/mapped-types', `it copies rules in another way: ${text}`);
}
