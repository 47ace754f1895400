import {
  applyDecorators,
  type ArgumentMetadata,
  type ExecutionContext,
  Inject,
  Injectable,
  type OnModuleInit,
  type PipeTransform,
  type Type,
  UseInterceptors,
  ValidationPipe,
  type ValidationPipeOptions,
} from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { plainToInstance } from 'class-transformer';
import type { Request } from 'express';
import {
  BAD_REQUEST,
  type ErrorDefinition,
  FailsWith,
  type Fault,
  faultyInput,
  INVALID_PARAMETER,
  unstorableIn,
  VALIDATION_FAILED,
} from '#errors';
import { StartupError } from '#runtime';
import { DirectInterceptor } from '#operations';
import { nearestName } from '#settings';
import { ApplicationConfig, globalPipesOf } from './enhancers.internals.js';
import { faultsOf, RefusedInput } from './faults.js';
import { type Handler, parametersOf } from './handler-parameters.internals.js';
import { type CheckedProperty, INVALID, inputClassOf, isInputClass, untypedMembersOf } from './input-class.js';
import { lateOptionsOf } from './validation-pipes.internals.js';

type Fields = Record<string, unknown>;

/** At most this many unknown or repeated parameter names are listed in one message. */
const MAX_NAMED_FAULTS = 10;

const ERRORS: Partial<Record<ArgumentMetadata['type'], ErrorDefinition>> = {
  body: VALIDATION_FAILED,
  query: INVALID_PARAMETER,
  param: BAD_REQUEST,
};

const VALIDATION: ValidationPipeOptions = {
  transform: true,
  whitelist: true,
  exceptionFactory: (errors) => new RefusedInput(errors),
};

/**
 * Makes an instance of the class that a handler declares for `@Body()`, `@Body('member')`, `@Query()` or `@Param()`; the error lists
 * every fault. Undeclared members of a body are dropped; undeclared query parameters and repeated ones are refused.
 *
 * A class with rules of class-validator, or with decorators of class-transformer, goes through Nest's ValidationPipe as a
 * whole; its rules decide about repeated query parameters. In all other classes only our decorators act.
 *
 * As in Nest's ValidationPipe, the class of `@Body('member')` gets an object without members for null and for a missing member, and
 * class-transformer fills a class without any rule with everything that was sent, if it is an object. `@Query('name')` of type
 * string accepts at most one value. A pipe of the handler checks values of other types.
 *
 * @throws ApiError VALIDATION_FAILED for a body, INVALID_PARAMETER for a query, BAD_REQUEST for a path
 */
@Injectable()
export class InputPipe implements PipeTransform, OnModuleInit {
  private readonly dropping = new ValidationPipe(VALIDATION);
  private readonly refusing = new ValidationPipe({ ...VALIDATION, forbidNonWhitelisted: true });

  @Inject(DiscoveryService) private readonly discovery: DiscoveryService;

  constructor(private readonly application: ApplicationConfig) {}

  /**
   * @throws StartupError that names each option of a module's ValidationPipe that would decide what this pipe has decided, each
   *   member whose objects would arrive empty, or each handler of whose input the compiler has left out the type
   */
  onModuleInit(): void {
    const untyped = new Set<string>();
    const unchecked = new Set<string>();
    const late = lateOptionsOf(globalPipesOf(this.application), 'a global ValidationPipe');
    for (const { metatype } of this.discovery.getControllers()) {
      const controller = metatype as Type;
      const prototype = controller.prototype as Record<string, Handler>;
      for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
        for (const { source, metatype, pipes, hasOwnPipe } of parametersOf(controller, prototype[name] as Handler)) {
          if ((source === 'BODY' || source === 'QUERY') && metatype === undefined && !hasOwnPipe)
            unchecked.add(`${controller.name}.${name}`);
          if (source === undefined || !isInputClass(metatype)) continue;
          late.push(...lateOptionsOf(pipes, `the ValidationPipe of ${controller.name}.${name}`));
          for (const member of untypedMembersOf(metatype)) untyped.add(member);
        }
      }
    }
    if (unchecked.size > 0) {
      throw new StartupError(
        `Nothing would check the input of ${[...unchecked].join(', ')}, because the compiler has left out its types. ` +
          'tsc and nest build keep them by emitDecoratorMetadata, SWC by decoratorMetadata; tsx and esbuild cannot. ' +
          'Or give the parameter a pipe: @Body(new ValidationPipe({ expectedType: TheClass })).',
      );
    }
    if (untyped.size > 0) {
      throw new StartupError(
        `@ValidateNested() needs @Type(() => TheClass) beside it, or the objects arrive empty: ${[...untyped].join(', ')}.`,
      );
    }
    if (late.length === 0) return;
    throw new StartupError(
      `These have no effect, because the platform has checked bodies, queries and paths before: ${late.join(', ')}. ` +
        'Remove them; @Type(() => Number) converts, undeclared members are dropped, and a filter of ApiError has the faults.',
    );
  }

  transform(value: unknown, metadata: ArgumentMetadata): unknown {
    const { type, metatype, data } = metadata;
    const definition = ERRORS[type];
    const isWhole = type === 'body' || data === undefined;
    if (definition === undefined) return value;
    if (type === 'query' && !isWhole && metatype === String && Array.isArray(value)) {
      throw faultyInput(definition, [givenTwice(data)]);
    }
    if (!isWhole || !isInputClass(metatype)) return storable(value, metadata, definition);
    const given = data === undefined ? value : (value ?? {});
    if (type === 'body' && (typeof given !== 'object' || given === null || Array.isArray(given))) {
      const [rule, clause] = given === undefined ? ['required', 'is required'] : ['type', 'must be a JSON object'];
      throw faultyInput(definition, [{ property: data ?? '', rule, message: `${data ?? 'the body'} ${clause}` }]);
    }
    const { hasRules, properties, arrays } = inputClassOf(metatype);
    const sent = type === 'query' && arrays.length > 0 ? withArrays(given as Fields, arrays) : (given as Fields);
    if (!hasRules) return storable(plainToInstance(metatype, sent) as unknown, metadata, definition);
    if (properties === undefined) return this.validate(sent, metadata, definition);
    if (type === 'query') checkNames(sent, properties);
    const instance = new metatype() as Fields;
    let faults: Fault[] | undefined;
    for (const property of properties) {
      const read = property.read(sent[property.name], sent);
      if (read === INVALID) (faults ??= []).push(property.faultOf(sent[property.name], sent, data ?? ''));
      else if (read !== undefined) instance[property.name] = read;
    }
    if (faults === undefined) return instance;
    throw faultyInput(definition, faults);
  }

  private async validate(sent: Fields, metadata: ArgumentMetadata, definition: ErrorDefinition): Promise<unknown> {
    try {
      const pipe = metadata.type === 'query' ? this.refusing : this.dropping;
      return storable(await pipe.transform(sent, metadata), metadata, definition);
    } catch (error) {
      // A rule or a conversion of a module may throw an error of its own.
      if (!(error instanceof RefusedInput)) throw error;
      throw faultyInput(definition, faultsOf(error.errors, metadata.data ?? ''));
    }
  }
}

/** @throws ApiError that names a member which PostgreSQL could not store; rules of class-validator accept such texts and numbers */
function storable(value: unknown, { type, data }: ArgumentMetadata, definition: ErrorDefinition): unknown {
  // A path has none but NUL, which a handler may answer with 404.
  const fault = type === 'param' ? undefined : unstorableIn(value, data);
  if (fault !== undefined) throw faultyInput(definition, [fault]);
  return value;
}

/** @throws ApiError INVALID_PARAMETER that lists the unknown and repeated names in a query, MAX_NAMED_FAULTS at most */
function checkNames(query: Fields, properties: readonly CheckedProperty[]): void {
  const faults: Fault[] = [];
  for (const name of Object.keys(query)) {
    if (faults.length === MAX_NAMED_FAULTS) break;
    const property = properties.find((each) => each.name === name);
    if (property === undefined) {
      const names = properties.map((each) => each.name);
      const nearest = nearestName(name, names);
      const known = names.length > 0 ? `known are ${names.join(', ')}` : 'this operation has none';
      const advice = nearest === undefined ? known : `did you mean '${nearest}'?`;
      const message = `unknown query parameter '${name}'; ${advice}`;
      faults.push({ property: name, rule: 'additionalProperties', message });
    } else if (Array.isArray(query[name]) && !property.isArray) {
      faults.push(givenTwice(name));
    }
  }
  if (faults.length > 0) throw faultyInput(INVALID_PARAMETER, faults);
}

function givenTwice(name: string): Fault {
  return { property: name, rule: 'type', message: `query parameter '${name}' must be given only once` };
}

/** A query in which a parameter that is declared as an array, and was given once, is an array of one text. */
function withArrays(query: Fields, arrays: readonly string[]): Fields {
  const copy = { ...query };
  for (const name of arrays) if (typeof copy[name] === 'string') copy[name] = [copy[name]];
  return copy;
}

@Injectable()
class NoQueryInterceptor extends DirectInterceptor {
  override before(execution: ExecutionContext): void {
    const request = execution.getArgByIndex<Request>(0);
    if (request.originalUrl.includes('?')) checkNames(request.query, []);
  }
}

/**
 * Refuses every query parameter, with 400 `invalid_parameter`, before the input is checked; a query that nobody reads is
 * ignored otherwise, as in Nest. For operations that change something: a client that sends `?dry_run=true` must not believe
 * that it was heeded.
 *
 * @example `@Post() @NoQuery() createOrder(@Body() order: NewOrder): Promise<Order>`
 */
export function NoQuery(): MethodDecorator {
  return applyDecorators(FailsWith(INVALID_PARAMETER), UseInterceptors(NoQueryInterceptor));
}
