import { type ArgumentMetadata, Injectable, type PipeTransform, type Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { ApiError } from '../errors/api-error.js';
import { INVALID_PARAMETER, VALIDATION_FAILED } from '../errors/error-catalogue.js';
import { nearestName } from './nearest-name.js';

type Fields = Record<string, unknown>;

/**
 * Makes an instance of the class a handler declares for its `@Body()` or `@Query()`, and refuses what does not fit it:
 * every fault at once, in the order of the class's properties. Members of a body that the class does not declare are
 * dropped; query parameters that it does not declare, or that are given twice, are refused.
 *
 * @throws ApiError VALIDATION_FAILED or INVALID_PARAMETER
 */
@Injectable()
export class InputPipe implements PipeTransform {
  private readonly namesOfClasses = new Map<unknown, readonly string[]>();

  async transform(value: unknown, { type, metatype, data }: ArgumentMetadata): Promise<unknown> {
    if ((type !== 'body' && type !== 'query') || data !== undefined || metatype === undefined) {
      return value;
    }
    const names = this.namesOf(metatype);
    if (names.length === 0) {
      return value;
    }
    const definition = type === 'body' ? VALIDATION_FAILED : INVALID_PARAMETER;
    const faults = type === 'body' ? [] : queryFaults(value as Fields, names);
    if (faults.length > 0) {
      throw new ApiError(definition, faults.join('; '));
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new ApiError(definition, 'the body must be a JSON object');
    }
    const instance = plainToInstance(metatype as Type<object>, value);
    const errors = await validate(instance, { whitelist: true, stopAtFirstError: true });
    if (errors.length > 0) {
      throw new ApiError(definition, errors.flatMap(clauses).join('; '));
    }
    return instance;
  }

  /** Names of the properties that a class declares rules for, in their order. */
  private namesOf(metatype: Type): readonly string[] {
    let names = this.namesOfClasses.get(metatype);
    if (!names) {
      const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', true, false);
      names = [...new Set(rules.map((rule) => rule.propertyName))];
      this.namesOfClasses.set(metatype, names);
    }
    return names;
  }
}

function queryFaults(query: Fields, names: readonly string[]): string[] {
  return Object.keys(query).flatMap((name) => {
    if (!names.includes(name)) {
      const nearest = nearestName(name, names);
      const advice = nearest === undefined ? `known are ${names.join(', ')}` : `did you mean '${nearest}'?`;
      return [`unknown query parameter '${name}'; ${advice}`];
    }
    return Array.isArray(query[name]) ? [`query parameter '${name}' must be given only once`] : [];
  });
}

function clauses(error: ValidationError): string[] {
  const nested = (error.children ?? []).flatMap(clauses).map((clause) => `${error.property}.${clause}`);
  return [...Object.values(error.constraints ?? {}), ...nested];
}
