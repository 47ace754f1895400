import { Injectable, Logger, type OnModuleInit, type Type } from '@nestjs/common';
import { RouteParamtypes } from '@nestjs/common/internal';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { declaredTypesOf, type Handler, type HandlerParameter, parametersOf } from './handler-parameters.js';
import { inputClassOf, isInputClass } from './input-class.js';

const { BODY, COOKIES, HEADERS, HOST, PARAM, QUERY, SIGNED_COOKIES } = RouteParamtypes;

const TEXT_OR_BYTES_ADVICE = 'With @ApiConsumes it gets the text or the bytes of the media types that it names.';

/** The decorators of parameters that clients fill. */
const DECORATORS = new Map<unknown, string>([
  [BODY, '@Body'],
  [COOKIES, '@Cookies'],
  [HEADERS, '@Headers'],
  [HOST, '@HostParam'],
  [PARAM, '@Param'],
  [QUERY, '@Query'],
  [SIGNED_COOKIES, '@SignedCookies'],
]);

/**
 * Checks the parameters of every handler at start. A declared type that nothing would enforce fails the start; a class
 * without any rule is logged. Parameters with a pipe, be it their own or that of the handler or controller, are skipped.
 */
@Injectable()
export class InputCheck implements OnModuleInit {
  private readonly log = new Logger(InputCheck.name);

  constructor(private readonly discovery: DiscoveryService) {}

  /** @throws Error when nothing would check the declared type of a parameter */
  onModuleInit(): void {
    for (const { metatype } of this.discovery.getControllers()) {
      this.checkController(metatype as Type);
    }
  }

  private checkController(controller: Type): void {
    const prototype = controller.prototype as Record<string, (...parameters: never[]) => unknown>;
    for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
      const handler = prototype[name] as Handler;
      for (const parameter of parametersOf(controller, handler)) {
        const decorator = DECORATORS.get(parameter.source);
        if (decorator === undefined) continue;
        const data = parameter.data === undefined ? '' : `'${parameter.data}'`;
        const problem = problemOf(parameter, declaredTypesOf(controller, handler));
        if (problem !== undefined) {
          throw new Error(`${decorator}(${data}) of ${controller.name}.${name} ${problem}`);
        }
        if (hasNoRule(parameter)) {
          this.log.warn(
            `${decorator}(${data}) of ${controller.name}.${name} is not checked: ${nameOf(parameter)} has no rule.`,
          );
        }
      }
    }
  }
}

/** @param types the media types that the handler declares; undefined for application/json */
function problemOf(parameter: HandlerParameter, types: readonly string[] | undefined): string | undefined {
  const { source, data, metatype } = parameter;
  const isWhole = data === undefined;
  if (isLeftToPipe(parameter) || metatype === undefined || metatype === Object) {
    return undefined;
  }
  if (isInputClass(metatype)) {
    if (source === BODY || (isWhole && (source === QUERY || source === PARAM))) return undefined;
    const advice = isPipeable(source) ? ', or use a pipe.' : '.';
    return `is declared as ${nameOf(parameter)}, which nothing would check. Take each value by its name${advice}`;
  }
  if (source === BODY) {
    const isUnparsed = isWhole && (metatype === String || metatype === Buffer);
    if (types && isUnparsed) return undefined;
    const advice = isUnparsed ? ` ${TEXT_OR_BYTES_ADVICE}` : '';
    return `is declared as ${nameOf(parameter)}, which nothing would check. Declare a class or unknown, or use a pipe.${advice}`;
  }
  return isWhole || metatype === String
    ? undefined
    : `is declared as ${nameOf(parameter)}, but clients send a text. Declare it as string, or use a pipe.`;
}

function isLeftToPipe({ source, hasPipe }: HandlerParameter): boolean {
  return hasPipe && isPipeable(source);
}

/** Nest runs no pipes for header fields and parts of the host. */
function isPipeable(source: unknown): boolean {
  return source !== HEADERS && source !== HOST;
}

function hasNoRule({ metatype, hasPipe }: HandlerParameter): boolean {
  return !hasPipe && isInputClass(metatype) && !inputClassOf(metatype).hasRules;
}

function nameOf({ metatype }: HandlerParameter): string {
  return (metatype as Type).name;
}
