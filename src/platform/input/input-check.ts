import { Injectable, type OnModuleInit, type Type } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, MetadataScanner } from '@nestjs/core';
import { StartupError } from '../errors/startup-error.js';
import { RouteParamtypes } from '../internals/nest-metadata.js';
import { lateOptionOf } from '../internals/other-internals.js';
import { declaredTypesOf, type Handler, type HandlerParameter, parametersOf } from './handler-parameters.js';
import { inputClassOf, isInputClass } from './input-class.js';

const { BODY, HEADERS, PARAM, QUERY } = RouteParamtypes;

/** The decorators of parameters that clients fill. */
const DECORATORS = new Map<unknown, string>([
  [BODY, '@Body'],
  [HEADERS, '@Headers'],
  [PARAM, '@Param'],
  [QUERY, '@Query'],
]);

/**
 * Checks the parameters of every handler at start. TypeScript's types do not exist at run time, so a declared type that
 * nothing would enforce fails the start. Parameters with a pipe, be it their own or that of the handler or controller, are
 * skipped. A global ValidationPipe of a module gets what the platform's pipe has made, so options that would decide before
 * fail the start, too.
 */
@Injectable()
export class InputCheck implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly application: ApplicationConfig,
  ) {}

  /** @throws Error when nothing would check the declared type of a parameter, or an option of a global pipe would not act */
  onModuleInit(): void {
    const option = this.application.getGlobalPipes().map(lateOptionOf).find(Boolean);
    if (option !== undefined) {
      throw new StartupError(
        `${option} of a global ValidationPipe has no effect: the platform has checked bodies, queries and paths before. ` +
          'Remove it; @Type(() => Number) converts, and undeclared members are dropped.',
      );
    }
    for (const { metatype } of this.discovery.getControllers()) {
      const controller = metatype as Type;
      const prototype = controller.prototype as Record<string, Handler>;
      for (const name of new MetadataScanner().getAllMethodNames(prototype))
        check(controller, prototype[name] as Handler);
    }
  }
}

function check(controller: Type, handler: Handler): void {
  const types = declaredTypesOf(controller, handler);
  for (const parameter of parametersOf(controller, handler)) {
    const decorator = DECORATORS.get(parameter.source);
    if (decorator === undefined) continue;
    const { data, metatype } = parameter;
    const where = `${decorator}(${data === undefined ? '' : `'${data}'`}) of ${controller.name}.${handler.name}`;
    const name = (metatype as Type | undefined)?.name;
    if (!isChecked(parameter, types !== undefined)) {
      throw new Error(
        `${where} is declared as ${name}, which nothing would check. Declare a class for the whole body, query or path, and ` +
          'string for a single value, or use a pipe. With @ApiConsumes a body may be a string or a Buffer.',
      );
    }
    const unfillable = propertyWithoutStrings(parameter, types);
    if (unfillable !== undefined) {
      throw new Error(
        `${where} gets strings alone, so ${unfillable} of ${name} could never be valid. Use @Int64Parameter or ` +
          '@IntegerParameter, or an @EnumProperty of two values.',
      );
    }
  }
}

/** The name of a property that refuses every string, although a query, a path or a form gives strings alone. */
function propertyWithoutStrings(
  { source, metatype, hasPipe }: HandlerParameter,
  types: string[] = [],
): string | undefined {
  const isForm = types.length > 0 && types.every((type) => /urlencoded$|^multipart\//.test(type));
  if (hasPipe || !isInputClass(metatype) || (source === BODY && !isForm)) return undefined;
  return inputClassOf(metatype).properties?.find(({ refusesStrings }) => refusesStrings)?.name;
}

/** @param hasTypes whether `@ApiConsumes` names the media types of the body */
function isChecked({ source, data, metatype, hasPipe }: HandlerParameter, hasTypes: boolean): boolean {
  const isWhole = data === undefined;
  if (metatype === undefined || metatype === Object) return true;
  // Nest runs no pipes for header fields.
  if (hasPipe && source !== HEADERS) return true;
  if (isInputClass(metatype)) return source === BODY || (isWhole && (source === QUERY || source === PARAM));
  if (source === BODY) return isWhole && hasTypes && (metatype === String || metatype === Buffer);
  return isWhole || metatype === String;
}
