import type * as core from '@nestjs/core/internal';
import type * as pipes from '@nestjs/core/router/rejected-by-pipes.js';
import type * as execution from '@nestjs/core/router/router-execution-context.js';
import type * as responses from '@nestjs/core/router/router-response-controller.js';
import { createHash } from 'node:crypto';

export type NestInternals = typeof core & typeof execution & typeof responses & typeof pipes;

/** Imports the modules of Nest whose undocumented exports are used here. Rejects if one is missing. */
export async function importNestInternals(): Promise<NestInternals> {
  const modules = await Promise.all([
    import('@nestjs/core/internal'),
    import('@nestjs/core/router/router-execution-context.js'),
    import('@nestjs/core/router/router-response-controller.js'),
    import('@nestjs/core/router/rejected-by-pipes.js'),
  ]);
  return { ...modules[0], ...modules[1], ...modules[2], ...modules[3] };
}

/**
 * The methods of Nest that are replaced here or whose behaviour is assumed, with the first 16 digits of the SHA-256 of their
 * source text in @nestjs/core 12.5.1. If a version changes one, or a tool wraps one, review this file.
 */
const KNOWN_METHODS: Readonly<Record<string, string>> = {
  'ContextUtils.mergeParamsMetatypes': '674d0588b1d61bf5',
  ExecutionContextHost: '800c32b04f6f8878',
  'GuardsConsumer.createContext': '4242bad10222a2f9',
  'GuardsConsumer.pickResult': '5f09b2213e2eb20f',
  'GuardsConsumer.tryActivate': '40b2cfecca697705',
  'InterceptorsConsumer.intercept': '09a1af216a69036e',
  'ParamsTokenFactory.exchangeEnumForString': 'f61cf4750013c7a9',
  'PipesConsumer.apply': '2f810c8b8fbc9675',
  'PipesConsumer.applyPipes': 'c49eeb7235666109',
  'RouterExecutionContext.create': 'c1cd8ea6befa2343',
  'RouterExecutionContext.createGuardsFn': 'dfc523aa273bd8b4',
  'RouterExecutionContext.createHandleResponseFn': '2855ea703c372a44',
  'RouterExecutionContext.createPipesFn': 'edbcd4701c6a9ac2',
  'RouterExecutionContext.getMetadata': '762bbb18d8f5a4eb',
  'RouterExecutionContext.getParamValue': 'a436c5ed9a88c40e',
  'RouterExecutionContext.isPipeable': '197149cdaf66dbbc',
  'RouterExecutionContext.isResponseHandled': '06303ec83c09d42e',
  'RouterExecutionContext.reflectRedirect': '909683d15efb8f92',
  'RouterExecutionContext.reflectRenderTemplate': '874d4725cf5f2c16',
  'RouterResponseController.apply': 'ec229a77209658d9',
  'RouterResponseController.setHeaders': '387738418ad2d53a',
  'RouterResponseController.setStatus': 'ec7a793da7f6ba04',
  markRejectedByPipes: '018edd8596d53488',
};

/**
 * Describes how the internals of Nest differ from the known ones; undefined if they do not.
 *
 * @param calls the object through which an application calls its handlers
 * @param nest null when a module is missing
 */
export function differenceOfNest(calls: unknown, nest: NestInternals | null): string | undefined {
  if (nest === null) return 'a module of @nestjs/core is missing';
  if (typeof nest.FORBIDDEN_MESSAGE !== 'string') return 'Nest has no FORBIDDEN_MESSAGE';
  for (const [name, known] of Object.entries(KNOWN_METHODS)) {
    const method = methodOf(nest, name);
    if (method === undefined) return `Nest has no ${name}`;
    if (fingerprint(method) !== known) return `Nest's ${name} is another one`;
  }
  if (!(calls instanceof nest.RouterExecutionContext)) return 'Nest calls handlers from another place';
  const isSubclass = Object.getPrototypeOf(calls) !== nest.RouterExecutionContext.prototype;
  return isSubclass ? 'Nest calls handlers by another class' : undefined;
}

/** @param name of an exported function, or of a class and one of its methods, such as `PipesConsumer.apply` */
function methodOf(nest: NestInternals, name: string): unknown {
  const [exported = '', method] = name.split('.');
  const found = (nest as Record<string, unknown>)[exported] as { prototype?: Record<string, unknown> } | undefined;
  return method === undefined ? found : found?.prototype?.[method];
}

function fingerprint(method: unknown): string {
  return createHash('sha256').update(String(method)).digest('hex').slice(0, 16);
}
