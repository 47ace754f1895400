import { ApiProperty, PartialType } from '@nestjs/swagger';
import { ValidateBy } from 'class-validator';
import { declareJson, findMembersBy, writeJson } from '#json';
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

/** @throws StartupError when responses, events or streamed values would have other members than those that a class declares */
export function checkDeclaredMembers(): void {
  class Trial {
    @ApiProperty() documented = 1;
    @ValidateBy({ name: DECLARED, validator: { validate: () => true } }) declared = 2;
    other = 3;
  }
  const copy = new (PartialType(Trial))();
  const text = writeJson(new Trial()) + JSON.stringify([new Trial(), copy]);
  const one = '{"documented":1,"declared":2}';
  if (text !== `${one}[${one},${one}]`)
    throw misfit('class-validator or @nestjs/swagger', `members are written as ${text}`);
}
