import { type ArgumentMetadata, Injectable, type PipeTransform, type Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { ApiError } from '../errors/api-error.js';
import { type ErrorDefinition, INVALID_PARAMETER, VALIDATION_FAILED } from '../errors/error-catalogue.js';
import { nearestName } from './nearest-name.js';
import { type CheckedProperty, checkedPropertiesOf, INVALID } from './property.decorators.js';

type Fields = Record<string, unknown>;

/** Most faults in the names of query parameters that one message lists: whoever sends more has another question. */
const MAX_NAMED_FAULTS = 10;

/**
 * Makes an instance of the class a handler declares for its `@Body()` or `@Query()`, and refuses what does not fit it:
 * every fault at once, in the order of the class's properties. Members of a body that the class does not declare are
 * dropped; query parameters that it does not declare, or that are given twice, are refused.
 *
 * @throws ApiError VALIDATION_FAILED or INVALID_PARAMETER
 */
@Injectable()
export class InputPipe implements PipeTransform {
  private readonly inputs = new Map<unknown, Input>();

  transform(value: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if ((type !== 'body' && type !== 'query') || data !== undefined || metatype === undefined) {
      return value;
    }
    const input = this.inputOf(metatype);
    if (input.names.length === 0) {
      return value;
    }
    const definition = type === 'body' ? VALIDATION_FAILED : INVALID_PARAMETER;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new ApiError(definition, 'the body must be a JSON object');
    }
    const faults = type === 'body' ? [] : queryFaults(value as Fields, input.names);
    if (faults.length > 0) {
      throw new ApiError(definition, faults.slice(0, MAX_NAMED_FAULTS).join('; '));
    }
    return input.properties
      ? readProperties(metatype, input.properties, value as Fields, definition)
      : validateInstance(metatype, value, definition);
  }

  private inputOf(metatype: Type): Input {
    let input = this.inputs.get(metatype);
    if (!input) {
      const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', true, false);
      const properties = checkedPropertiesOf(metatype);
      input = {
        names: [...new Set(rules.map((rule) => rule.propertyName))],
        properties: properties.length === rules.length ? properties : undefined,
      };
      this.inputs.set(metatype, input);
    }
    return input;
  }
}

/** What is known of a class, looked up once. */
interface Input {
  /** Its properties that have rules, in their order. */
  readonly names: readonly string[];
  /** The rules, when our own decorators made all of them; then class-validator needs not be asked. */
  readonly properties: readonly CheckedProperty[] | undefined;
}

function readProperties(
  metatype: Type,
  properties: readonly CheckedProperty[],
  sent: Fields,
  definition: ErrorDefinition,
): unknown {
  const instance = new metatype() as Fields;
  let faults: string[] | undefined;
  for (const property of properties) {
    const value = sent[property.name];
    const read = value === undefined ? (property.isRequired ? INVALID : undefined) : property.read(value);
    if (read === INVALID) {
      (faults ??= []).push(property.fault(value));
    } else if (read !== undefined) {
      instance[property.name] = read;
    }
  }
  if (faults) {
    throw new ApiError(definition, faults.join('; '));
  }
  return instance;
}

async function validateInstance(metatype: Type, sent: object, definition: ErrorDefinition): Promise<unknown> {
  const instance = plainToInstance(metatype as Type<object>, sent);
  const errors = await validate(instance, { whitelist: true, stopAtFirstError: true });
  if (errors.length > 0) {
    throw new ApiError(definition, errors.flatMap(clauses).join('; '));
  }
  return instance;
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
