import type * as core from '@nestjs/core/internal';
import type * as bodies from '@nestjs/core/helpers/destroy-unsent-body.js';
import type * as pipes from '@nestjs/core/router/rejected-by-pipes.js';
import type * as execution from '@nestjs/core/router/router-execution-context.js';
import type * as responses from '@nestjs/core/router/router-response-controller.js';
import { createHash } from 'node:crypto';

export type NestInternals = typeof core & typeof execution & typeof responses & typeof pipes & typeof bodies;

/** Imports the modules of Nest whose undocumented exports are used here. Rejects if one is missing. */
export async function importNestInternals(): Promise<NestInternals> {
  const modules = await Promise.all([
    import('@nestjs/core/internal'),
    import('@nestjs/core/router/router-execution-context.js'),
    import('@nestjs/core/router/router-response-controller.js'),
    import('@nestjs/core/router/rejected-by-pipes.js'),
    import('@nestjs/core/helpers/destroy-unsent-body.js'),
  ]);
  return { ...modules[0], ...modules[1], ...modules[2], ...modules[3], ...modules[4] };
}

/** The classes and functions of Nest that are replaced here or whose behaviour is assumed. */
const KNOWN = [
  ...['ContextUtils', 'ExecutionContextHost', 'GuardsConsumer', 'InterceptorsConsumer', 'ParamsTokenFactory'],
  ...[
    'PipesConsumer',
    'RouterExecutionContext',
    'RouterResponseController',
    'destroyUnsentBody',
    'markRejectedByPipes',
  ],
];

/**
 * The first 16 digits of the SHA-256 of their source texts and those of their methods in @nestjs/core 12.5.1. If a version
 * changes one, or a tool wraps one, review `handler-calls.ts`.
 */
const FINGERPRINT = '50cbab2edbe939e4';

/**
 * Describes how the internals of Nest differ from the known ones; undefined if they do not.
 *
 * @param calls the object through which an application calls its handlers
 * @param nest null when a module is missing
 */
export function differenceOfNest(calls: unknown, nest: NestInternals | null): string | undefined {
  if (nest === null) return 'a module of @nestjs/core is missing';
  const missing = [...KNOWN, 'FORBIDDEN_MESSAGE'].find((name) => (nest as Record<string, unknown>)[name] === undefined);
  if (missing !== undefined) return `Nest has no ${missing}`;
  const sources = KNOWN.flatMap((name) => sourcesOf((nest as Record<string, unknown>)[name]));
  const fingerprint = createHash('sha256').update(sources.join()).digest('hex').slice(0, 16);
  if (fingerprint !== FINGERPRINT) return `the code of @nestjs/core has changed (${fingerprint})`;
  if (!(calls instanceof nest.RouterExecutionContext)) return 'Nest calls handlers from another place';
  const isSubclass = Object.getPrototypeOf(calls) !== nest.RouterExecutionContext.prototype;
  return isSubclass ? 'Nest calls handlers by another class' : undefined;
}

/** The source of an exported class or function, and those of its methods, which a tool may have replaced. */
function sourcesOf(exported: unknown): string[] {
  const { prototype } = exported as { prototype?: Record<string, unknown> };
  return [exported, ...Object.getOwnPropertyNames(prototype ?? {}).map((name) => prototype?.[name])].map(String);
}
