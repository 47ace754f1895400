import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { misfit } from '#runtime';

/** A package by whose decorators handlers get requests that are not of HTTP. An application may not have it. */
interface Transport {
  readonly name: string;
  /** Its documented decorators: each decorates a class or a method. */
  readonly decorators: Readonly<Record<string, 'classes' | 'methods'>>;
  /** The kinds of its handlers, by the metadata key of its decorators: those of classes, and those of methods. */
  readonly classes: Readonly<Record<string, string>>;
  readonly methods: Readonly<Record<string, string>>;
}

export const GRAPHQL: Transport = {
  name: '@nestjs/graphql',
  decorators: {
    Query: 'methods',
    Mutation: 'methods',
    Subscription: 'methods',
    ResolveField: 'methods',
    ResolveReference: 'methods',
  },
  classes: {},
  methods: {
    'graphql:resolver_type': 'resolver',
    'graphql:resolve_property': 'resolver',
    'graphql:resolve_reference': 'resolver',
  },
};

export const MICROSERVICES: Transport = {
  name: '@nestjs/microservices',
  decorators: {
    MessagePattern: 'methods',
    EventPattern: 'methods',
    GrpcMethod: 'methods',
    GrpcStreamMethod: 'methods',
    GrpcStreamCall: 'methods',
  },
  classes: {},
  methods: { 'microservices:pattern': 'message handler' },
};

export const WEBSOCKETS: Transport = {
  name: '@nestjs/websockets',
  decorators: { WebSocketGateway: 'classes', SubscribeMessage: 'methods' },
  classes: { 'websockets:is_gateway': 'gateway' },
  methods: { 'websockets:message_mapping': 'message handler' },
};

export const TRANSPORTS = [GRAPHQL, MICROSERVICES, WEBSOCKETS];

type Decorators = Record<string, ((argument: string) => ClassDecorator & MethodDecorator) | undefined>;

/**
 * Decorates a class and its method by every copy of a transport's package that the application may use. An application that uses the
 * package has imported it before, and one without it imports nothing: for both this costs less than a ms.
 *
 * @param places the files from which the package is looked for
 * @throws StartupError when a decorator leaves none of the known keys: nobody would notice that a handler is open to everybody
 */
export async function checkTransport(transport: Transport, places = placesOfApplication()): Promise<void> {
  for (const file of copiesOf(transport.name, places)) {
    const copy = (await import(pathToFileURL(file).href)) as Decorators;
    for (const [decorator, kind] of Object.entries(transport.decorators)) {
      const target = class {
        handle(): void {}
      };
      const method = Object.getOwnPropertyDescriptor(target.prototype, 'handle') as TypedPropertyDescriptor<object>;
      if (kind === 'classes') copy[decorator]?.('trial')(target);
      else copy[decorator]?.('trial')(target.prototype, 'handle', method);
      const decorated = kind === 'classes' ? target : (method.value as object);
      if (!Object.keys(transport[kind]).some((key) => Reflect.hasMetadata(key, decorated)))
        throw misfit(
          transport.name,
          `a handler with @${decorator} would not be noticed, and could be open to everybody`,
        );
    }
  }
}

/** This package, Nest's core, the program and the working directory: each may have a copy of its own. */
function placesOfApplication(): string[] {
  const here = import.meta.url;
  return [here, createRequire(here).resolve('@nestjs/core'), process.argv[1] ?? '.', join(process.cwd(), '_')];
}

function copiesOf(name: string, places: readonly string[]): Set<string> {
  const files = places.flatMap((place) => {
    try {
      return createRequire(place).resolve(name);
    } catch {
      return [];
    }
  });
  return new Set(files);
}
