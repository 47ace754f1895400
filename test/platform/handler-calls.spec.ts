import {
  type ArgumentMetadata,
  BadRequestException,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  type ArgumentsHost,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  Headers,
  HttpCode,
  HttpException,
  type INestApplication,
  Injectable,
  Ip,
  Module,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Post,
  type Provider,
  Query,
  Req,
  Scope,
  Sse,
  StreamableFile,
  type Type,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, NestFactory } from '@nestjs/core';
import { jest } from '@jest/globals';
import { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import express, { type Request, type Response } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { catchError, map, Observable, of } from 'rxjs';
import { callHandlersDirectly, PlatformExpressAdapter } from '#edge';
import { DirectInterceptor } from '#operations';
import { readConfig } from '../support/config.js';
import { APPLICATION_OPTIONS } from '../../libs/service/src/set-up.js';
import { type HttpCall, HttpClient } from '../support/http-client.js';
import { until } from '../support/until.js';

/** The calls for the current request, in order. */
let calls: string[] = [];

function note(call: string): void {
  calls.push(call);
}

// Bound classes get their label in the constructor, so an instance that was never constructed has none.

function guard(name: string, verdict: () => unknown, scope = Scope.DEFAULT): Type<CanActivate> {
  @Injectable({ scope })
  class NotingGuard implements CanActivate {
    private readonly label = name;
    constructor() {
      note(`new guard ${name}`);
    }
    canActivate(): boolean {
      note(`guard ${this.label}`);
      return verdict() as boolean;
    }
  }
  return NotingGuard;
}

function direct(
  name: string,
  act: () => void = () => undefined,
  change: (result: unknown) => unknown = (result) => result,
): Type<NestInterceptor> {
  @Injectable()
  class NotingInterceptor extends DirectInterceptor {
    private readonly label = name;
    override before(context: ExecutionContext): void {
      note(`precede ${this.label} ${context.getHandler().name} ${context.getArgs().length}`);
      act();
    }
    override after(result: unknown): unknown {
      return change(result);
    }
  }
  return NotingInterceptor;
}

function ordinary(name: string, change: (next: Observable<unknown>) => Observable<unknown>): Type<NestInterceptor> {
  @Injectable()
  class NotingInterceptor implements NestInterceptor {
    /** A member that has the name of the platform's own method by chance, and must not be called. */
    before(): void {
      note('never');
    }
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      note(`intercept ${name}`);
      return change(next.handle());
    }
  }
  return NotingInterceptor;
}

class OverridingInterceptor extends DirectInterceptor {
  override intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return super.intercept(context, next).pipe(map((value: unknown) => ({ overridden: value })));
  }
}

const wrapping = ordinary('wrapping', (next) => next.pipe(map((value) => ({ wrapped: value }))));
const catching = ordinary('catching', (next) => next.pipe(catchError((error: Error) => of(error.message))));

/** A file that notes its end. */
function file(): StreamableFile {
  const stream = Readable.from(['file']).once('close', () => note('file closed'));
  return new StreamableFile(stream);
}

function pipe(name: string, transform: (value: unknown) => unknown = (value) => value, scope = Scope.DEFAULT) {
  @Injectable({ scope })
  class NotingPipe implements PipeTransform {
    private readonly label = name;
    transform(value: unknown, metadata: ArgumentMetadata): unknown {
      note(`pipe ${this.label}: ${JSON.stringify(value)} ${JSON.stringify(metadata)} ${metadata.metatype?.name}`);
      // Each pipe gets its own metadata.
      Object.assign(metadata, { data: 'changed' });
      return transform(value);
    }
  }
  return NotingPipe as Type<PipeTransform>;
}

const fails = (message: string) => (): never => {
  throw new BadRequestException(message);
};
const failsLater = (message: string) => async (): Promise<never> => {
  await turn();
  throw new BadRequestException(message);
};
const later = async (value: unknown): Promise<unknown> => {
  await turn();
  return `${String(value)} later`;
};
const atOnce = (value: unknown): Promise<unknown> => Promise.resolve(`${String(value)} at once`);
/** Like a query of a query builder, which runs when `then` is called. */
const thenable = (value: unknown) => ({
  then(resolve: (value: unknown) => void): void {
    note('then');
    resolve(value);
  },
});

/** A parameter whose value is the result of a function. */
const From = createParamDecorator((make: () => unknown, context: ExecutionContext) => {
  note(`extract ${context.getClass().name}.${context.getHandler().name} ${context.getType()}`);
  return make();
});

@Catch()
class NotingFilter implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost): void {
    const [request, response] = host.getArgs<[Request & Record<symbol, unknown>, Response]>();
    note(`filter: ${error.message}`);
    if (request[Symbol.for('nestjs:rejected-by-pipes')]) note('rejected by pipes');
    response.status(error.getStatus()).json({ error: error.message });
  }
}

/** A handler, its request, and the expected answer. */
interface Case {
  /** Decorators of its controller. */
  readonly onController?: ClassDecorator[];
  /** Decorators of the handler. */
  readonly on?: MethodDecorator[];
  /** By default `@Get(':id')`. */
  readonly route?: MethodDecorator;
  readonly parameters?: ParameterDecorator[];
  /** By default it returns its parameters. */
  readonly handle?: (...parameters: any[]) => unknown;
  readonly send?: HttpCall & { method?: string };
  readonly status?: number;
  readonly text?: string;
  readonly calls?: string[];
  /** Nest takes turns between the pipes of several arguments. */
  readonly inAnyOrder?: boolean;
}

const ENDLESS = 'an observable without end';

const CASES: Record<string, Case> = {
  'guards that say yes: at once, later, as an observable': {
    onController: [UseGuards(guard('controller', () => true))],
    on: [
      UseGuards(
        guard('promise', () => Promise.resolve(true)),
        guard('observable', () => of(false, true)),
        guard('promise of an observable', () => Promise.resolve(of(true))),
        guard('truthy', () => 'yes'),
        // Made for the controller.
        guard('transient', () => true, Scope.TRANSIENT),
      ),
    ],
  },
  'a guard that says no by a promise, between others': {
    onController: [UseGuards(guard('controller', () => true))],
    on: [
      UseGuards(
        guard('refusing', () => Promise.resolve(false)),
        guard('never asked', () => true),
      ),
      UseInterceptors(direct('never')),
      HttpCode(202),
      Header('X-Handler', 'never'),
    ],
    status: 403,
  },
  'a guard that is made for each request': { on: [UseGuards(guard('request', () => true, Scope.REQUEST))] },
  'direct ones, behind the guards and before the pipes; what the handler returned is changed': {
    onController: [UseInterceptors(direct('controller'))],
    on: [
      UseGuards(guard('first', () => Promise.resolve(true))),
      UseInterceptors(
        direct('handler', undefined, (result) => ({ result })),
        direct('last'),
      ),
      UsePipes(pipe('piped')),
    ],
    parameters: [Param('id')],
    text: '{"result":["7"]}',
    calls: [
      'guard global',
      'guard first',
      'precede global handle 3',
      'precede controller handle 3',
      'precede handler handle 3',
      'precede last handle 3',
      'pipe global: "7" {"type":"param","data":"id"} undefined',
      'pipe piped: "7" {"type":"param","data":"id"} undefined',
      'handler',
    ],
  },
  'direct ones that change what an observable emitted, the inner one first': {
    on: [
      UseInterceptors(
        direct('outer', undefined, (result) => [result, 'outer']),
        direct('inner', undefined, (result) => [result, 'inner']),
      ),
    ],
    handle: () => of('first', 'last'),
    text: '[["last","inner"],"outer"]',
  },
  'a direct one whose intercept is overridden': {
    on: [UseInterceptors(OverridingInterceptor)],
    handle: () => 'value',
    text: '{"overridden":"value"}',
  },
  'a mix of both': {
    onController: [UseInterceptors(direct('outer'), wrapping)],
    on: [UseInterceptors(direct('inner'), catching)],
    handle: fails('caught'),
    text: '{"wrapped":"caught"}',
  },
  'all that a handler may ask for': {
    route: Post(':id'),
    parameters: [Body(), Query(), Query('q'), Param(), Param('id'), Headers('x-sent'), Ip(), Headers(), Req()],
    handle: (...parameters: unknown[]) => {
      const { headers } = parameters.pop() as Request;
      return [parameters.pop() === headers, ...parameters];
    },
    send: { method: 'POST', body: { name: 'Rex' }, headers: { 'x-sent': 'sent' } },
    status: 201,
    text: '[true,{"name":"Rex"},{"q":"1"},"1",{"id":"7"},"7","sent","127.0.0.1"]',
  },
  'pipes of controller, handler and parameter': {
    onController: [UsePipes(pipe('controller'))],
    on: [UsePipes(pipe('handler', later))],
    parameters: [Param('id', pipe('parameter', atOnce), pipe('transient', undefined, Scope.TRANSIENT))],
    text: '["7 later at once"]',
  },
  'arguments that fail later and at once: the error is sent, and the other one handled': {
    parameters: [Param('id', pipe('later', failsLater('later'))), From(fails('extracted'))],
    status: 400,
    inAnyOrder: true,
  },
  'a thenable, asked once': { handle: () => thenable({ a: [1, 2n] }), text: '{"a":[1,2]}' },
  'a direct one that fails with a file in hand': {
    on: [UseInterceptors(direct('failing', undefined, fails('late')))],
    handle: () => file(),
    status: 400,
  },
  'events, through direct interceptors, of a handler that fails after a while': {
    route: Sse(':id'),
    on: [UseInterceptors(direct('last'))],
    parameters: [Param('id', pipe('parameter', later))],
    handle: () => sleep(50).then(fails('late')),
    text: '\nevent: error\nid: 1\ndata: late\n\n',
  },
  [ENDLESS]: {
    on: [UseInterceptors(direct('last', undefined, (result) => result))],
    handle: () => new Observable(() => () => note('unsubscribed')),
  },
};

function controllerOf(tested: Case, index: number): Type {
  class CaseController {
    constructor() {
      note('new controller');
    }
    handle(...parameters: never[]): unknown {
      note(this instanceof CaseController ? 'handler' : 'handler of nobody');
      return tested.handle ? tested.handle(...parameters) : parameters;
    }
  }
  const prototype = CaseController.prototype;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'handle') as PropertyDescriptor;
  Controller(String(index))(CaseController);
  tested.onController?.forEach((decorate) => decorate(CaseController));
  for (const decorate of [tested.route ?? Get(':id'), ...(tested.on ?? [])]) decorate(prototype, 'handle', descriptor);
  tested.parameters?.forEach((decorate, position) => decorate(prototype, 'handle', position));
  Reflect.defineMetadata('design:paramtypes', [], prototype, 'handle');
  return CaseController;
}

const NAMES = Object.keys(CASES);
const CONTROLLERS = Object.values(CASES).map(controllerOf);

/** They note their calls, and change no response. */
const GLOBALS: Provider[] = [
  { provide: APP_GUARD, useClass: guard('global', () => true) },
  { provide: APP_INTERCEPTOR, useClass: direct('global') },
  { provide: APP_PIPE, useClass: pipe('global') },
  { provide: APP_FILTER, useClass: NotingFilter },
];

type Application = Awaited<ReturnType<typeof start>>;

async function start(setUp?: (app: INestApplication) => unknown) {
  @Module({ controllers: CONTROLLERS, providers: GLOBALS })
  class CasesModule {}
  const adapter = new PlatformExpressAdapter({ ...readConfig({}), shutdownLingerMs: 0 });
  const app = await NestFactory.create(CasesModule, adapter, { ...APPLICATION_OPTIONS, logger: false });
  app.use(express.json());
  await setUp?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return { client: new HttpClient(origin), origin, close: () => app.close() };
}

async function ask({ client }: Application, name: string) {
  const { method = 'GET', ...call } = CASES[name]?.send ?? {};
  calls = [];
  const { status, headers, text } = await client.send(method, `/${NAMES.indexOf(name)}/7?q=1`, call);
  await turn();
  const { date: _date, 'x-request-id': _id, ...compared } = headers;
  return { status, headers: compared, text, calls: CASES[name]?.inAnyOrder ? calls.sort() : calls };
}

let byNest: Application;
let directly: Application;
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeAll(async () => {
  byNest = await start();
  directly = await start(callHandlersDirectly);
  process.on('unhandledRejection', onUnhandled);
});
afterAll(async () => {
  process.off('unhandledRejection', onUnhandled);
  await byNest.close();
  await directly.close();
});

test.each(Object.entries(CASES).filter(([name]) => name !== ENDLESS))(
  'as by Nest: %s',
  async (name, { status = 200, text, calls }) => {
    const expected = await ask(byNest, name);
    // Twice, because the first request must leave no state.
    expect(await ask(directly, name)).toEqual(expected);
    expect(await ask(directly, name)).toEqual(expected);
    expect(unhandled).toEqual([]);
    expect(expected.status).toBe(status);
    if (text !== undefined) expect(expected.text).toBe(text);
    if (calls) expect(expected.calls).toEqual(calls);
  },
);

test.each([
  ['a thenable, asked once', 0],
  ['a mix of both', 3],
])('intercept of direct interceptors is called only for a handler with another one: %s', async (name, times) => {
  const intercept = jest.spyOn(DirectInterceptor.prototype, 'intercept');
  expect((await ask(directly, name)).calls).toContain('precede global handle 3');
  expect(intercept).toHaveBeenCalledTimes(times);
  intercept.mockRestore();
});

test('a tool that wraps the calls of handlers, as OpenTelemetry does, sees them', async () => {
  const wrapped = jest.spyOn(RouterExecutionContext.prototype, 'create');
  const app = await start(callHandlersDirectly);
  expect(wrapped.mock.calls.length).toBeGreaterThan(NAMES.length / 2);
  wrapped.mockRestore();
  await app.close();
});

test('a client that goes away ends the observable of a handler', async () => {
  const leaving = new AbortController();
  calls = [];
  const answer = fetch(`${directly.origin}/${NAMES.indexOf(ENDLESS)}/7`, { signal: leaving.signal });
  await until(() => calls.includes('handler'));
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await until(() => calls.includes('unsubscribed'));
});
