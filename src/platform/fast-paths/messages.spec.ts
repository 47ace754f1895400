import express, { type Express, type Request, type Response } from 'express';
import fc from 'fast-check';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createRequestClass, createResponseClass, setValidHeader } from './messages.js';

/** A server that is asked one request at a time, each on a connection of its own. */
class Asked {
  private readonly failures: unknown[] = [];
  private answer: ((response: ServerResponse) => void) | undefined;

  private constructor(private readonly server: Server) {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      response.once('close', () => request.socket.end());
      try {
        this.answer?.(response);
      } catch (error) {
        this.failures.push(error);
        response.destroy();
      }
    });
  }

  static async start(server: Server): Promise<Asked> {
    const asked = new Asked(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return asked;
  }

  /** Sends a request, lets `answer` have the response, and returns all bytes that come back, the date left out. */
  async ask(request: string, answer?: (response: ServerResponse) => void): Promise<string> {
    this.answer = answer;
    const received = await new Promise<string>((resolve, reject) => {
      let bytes = '';
      const { port } = this.server.address() as AddressInfo;
      const socket = connect(port, '127.0.0.1', () => socket.write(request));
      socket.setEncoding('latin1');
      socket.on('data', (chunk: string) => (bytes += chunk));
      socket.on('end', () => resolve(bytes.replace(/^Date: .{3}, .* GMT\r$/m, 'Date: now\r')));
      socket.on('error', reject);
      socket.setTimeout(5_000, () => reject(new Error(`Nothing more came after: ${bytes}`)));
    });
    expect(this.failures.splice(0)).toEqual([]);
    return received;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }
}

/** A server whose messages are made by the classes of an application, and answered by it unless told otherwise. */
function createOwnServer(app: Express): Server {
  return createServer({ IncomingMessage: createRequestClass(app), ServerResponse: createResponseClass(app) }, app);
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const REQUESTS = [
  GET,
  'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'GET / HTTP/1.0\r\n\r\n',
  'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
];

describe('header fields of responses', () => {
  let node: Asked;
  let own: Asked;
  beforeAll(async () => {
    node = await Asked.start(createServer());
    const app = express();
    own = await Asked.start(createServer({ ServerResponse: createResponseClass(app) }));
  });
  afterAll(() => Promise.all([node.stop(), own.stop()]));

  /** What each step returned or threw, and what a client received. */
  async function compare(request: string, steps: Step[]): Promise<void> {
    const [expected, actual] = await Promise.all(
      [node, own].map(async (server) => {
        const outcomes: unknown[] = [];
        const bytes = await server.ask(request, (response) => {
          response.on('error', ({ message }) => outcomes.push(message));
          for (const step of steps) outcomes.push(outcomeOf(response, step));
          if (!response.writableEnded) outcomes.push(outcomeOf(response, ['end']));
          // What could not be sent.
          if (!response.writableEnded) response.destroy();
        });
        return { outcomes, bytes };
      }),
    );
    expect(actual).toEqual(expected);
  }

  type Step = [method: string, ...parameters: unknown[]];

  function outcomeOf(response: ServerResponse, [method, ...parameters]: Step): unknown {
    const state = (): unknown[] => [
      response.getHeaders(),
      response.getHeaderNames(),
      (response as unknown as { getRawHeaderNames(): string[] }).getRawHeaderNames(),
      response.headersSent,
      response.statusCode,
    ];
    try {
      const call = (response as unknown as Record<string, (...parameters: unknown[]) => unknown>)[method];
      // Arrays may be kept and changed.
      const result = call?.apply(response, structuredClone(parameters));
      return [method, result === response ? 'the response' : structuredClone(result), ...state()];
    } catch (error) {
      const { name, code, message } = error as NodeJS.ErrnoException;
      return [method, name, code, message, ...state()];
    }
  }

  const maps = (entries: [string, unknown][]): Map<string, unknown> => new Map(entries);

  const name = fc
    .constantFrom(
      ...['X-A', 'x-b', 'Vary', 'Link', 'Content-Type', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Date'],
      ...['Set-Cookie', 'Cookie', 'Content-Disposition', 'Keep-Alive', 'Trailer', 'Expect', '__proto__'],
    )
    .chain((text) => fc.constantFrom(text, text.toLowerCase(), text.toUpperCase()));
  const text = fc.constantFrom('a', 'b', '', '5', 'close', 'keep-alive', 'chunked', 'a, b', 'é', 'â\x82¬', 'a;b="é"');
  const number = fc.constantFrom(0, 3, 5, -1, 1.5, NaN);
  const list = fc.array(text, { maxLength: 3 });
  const invalidName = fc.constantFrom<unknown>('', 'a b', 'é', 'a:', undefined, null, 7);
  const invalidValue = fc.constantFrom<unknown>('x\ny', '€', '\0', undefined, ['a', '€'], ['a\r\nb: c']);
  const oddValue = fc.constantFrom<unknown>(null, true, ['a', undefined], [1, 2], [['a'], 'b'], { a: 1 });
  const anyName = fc.oneof({ weight: 12, arbitrary: name }, { weight: 1, arbitrary: invalidName });
  const value = fc.oneof(
    { weight: 8, arbitrary: text },
    { weight: 3, arbitrary: number },
    { weight: 4, arbitrary: list },
    { weight: 1, arbitrary: invalidValue },
    { weight: 1, arbitrary: oddValue },
  );
  // A list that names a field twice, or one that was set before, means different things to different versions of Node;
  // so these names occur in no other step.
  const unusedNames = fc.subarray(['Y-A', 'Y-B', 'y-c', 'Y-Cookie']);
  const fields = fc.oneof(
    fc.dictionary(fc.oneof(name, fc.constantFrom('', 'a b')), value, { maxKeys: 3, noNullPrototype: false }),
    unusedNames.chain((names) =>
      fc
        .tuple(...names.map(() => fc.oneof(text, number, list, invalidValue)))
        .map((values) => names.flatMap((unused, index) => [unused, values[index]])),
    ),
    fc.constantFrom<unknown>(['Y-A'], ['Y-A', 'a', 'Y-B'], undefined, null, 'text', 7),
  );
  const status = fc.constantFrom<unknown>(200, 204, 304, 404, 500, 999, '201', 99, 1000, 'text');
  const reason = fc.constantFrom<unknown>('Fine', '', 'é', 'bad\nreason', '€');

  const setting = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constant('setHeader'), anyName, value) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('appendHeader'), anyName, value) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('removeHeader'), anyName) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('getHeader', 'hasHeader'), anyName) },
    {
      weight: 1,
      arbitrary: fc.tuple(
        fc.constant('setHeaders'),
        fc.oneof(
          fc.array(fc.tuple(name, value), { maxLength: 3 }).map(maps),
          fc.constantFrom<unknown>({ a: 'b' }, null, []),
        ),
      ),
    },
  ) as fc.Arbitrary<Step>;
  const sending = fc.oneof(
    fc.tuple(fc.constant('writeHead'), status),
    fc.tuple(fc.constant('writeHead'), status, fields),
    fc.tuple(fc.constant('writeHead'), status, reason, fields),
    fc.constant(['flushHeaders']),
    fc.constant(['write', 'some']),
    fc.constant(['end', 'whole']),
    fc.constant(['end', Buffer.from('bytes')]),
    fc.constant(['end']),
  ) as fc.Arbitrary<Step>;
  const program = fc
    .tuple(
      fc.array(setting, { maxLength: 8 }),
      sending,
      fc.array(fc.oneof(setting, sending), { maxLength: 2 }),
      fc.boolean(),
    )
    .map(([before, send, after, isImplicit]) => [
      ...before,
      ...(isImplicit ? [['end', 'body'] as Step] : [send]),
      ...after,
    ]);

  test("are, return, throw and are sent as Node's, whatever is done to them", async () => {
    await fc.assert(fc.asyncProperty(fc.constantFrom(...REQUESTS), program, compare), { numRuns: 1_000 });
  });

  const instances: [string, Step[]][] = [
    [
      'a name in other cases',
      [
        ['setHeader', 'X-A', '1'],
        ['setHeader', 'x-b', 2],
        ['setHeader', 'x-A', '3'],
      ],
    ],
    [
      'a field that is set again after it was removed',
      [
        ['setHeader', 'a', '1'],
        ['setHeader', 'b', '2'],
        ['removeHeader', 'A'],
        ['setHeader', 'A', '3'],
      ],
    ],
    [
      'fields that are all removed',
      [
        ['setHeader', 'a', '1'],
        ['removeHeader', 'A'],
        ['writeHead', 200, { B: '1', b: '2' }],
      ],
    ],
    ['fields of writeHead alone', [['writeHead', 200, { B: '1', b: '2' }]]],
    [
      'fields of writeHead beside others',
      [
        ['setHeader', 'a', '1'],
        ['writeHead', 200, 'Fine', { A: '2', b: ['3', '4'], '': '5' }],
      ],
    ],
    [
      'a list of writeHead beside others',
      [
        ['setHeader', 'a', '1'],
        ['writeHead', 200, ['B', '2', 'c', '3']],
      ],
    ],
    [
      'the other name of writeHead',
      [
        ['setHeader', 'a', '1'],
        ['writeHeader', 200, { b: '2' }],
      ],
    ],
    [
      'half a pair',
      [
        ['setHeader', 'a', '1'],
        ['writeHead', 200, ['B']],
      ],
    ],
    [
      'a status that is none, and fields',
      [
        ['setHeader', 'a', '1'],
        ['writeHead', 99, { b: '1' }],
      ],
    ],
    [
      'a reason that is none',
      [
        ['setHeader', 'a', '1'],
        ['writeHead', 200, 'bad\nreason'],
      ],
    ],
    [
      'a file name that is not ASCII',
      [
        ['setHeader', 'Content-Disposition', 'attachment; filename="é"'],
        ['end', 'whole'],
      ],
    ],
    [
      'a file name in UTF-8',
      [
        ['setHeader', 'content-disposition', 'attachment; filename="â\x82¬"'],
        ['end', 'whole'],
      ],
    ],
    [
      'fields that Node shall not add',
      ['Date', 'Connection', 'Content-Length', 'Transfer-Encoding'].map((field) => ['removeHeader', field]),
    ],
    [
      'several cookies',
      [
        ['appendHeader', 'Set-Cookie', 'a=1'],
        ['appendHeader', 'set-cookie', ['b=2', 'c=3']],
        ['setHeader', 'a', '1'],
      ],
    ],
    ['values that are undefined in a list', [['setHeader', 'a', ['1', undefined]]]],
    [
      'the header section is sent',
      [
        ['setHeader', 'a', '1'],
        ['flushHeaders'],
        ['setHeader', 'b', '1'],
        ['appendHeader', 'a', '2'],
        ['removeHeader', 'a'],
        ['setHeaders', new Map([['b', '1']])],
        ['writeHead', 200],
        ['getHeader', 'A'],
        ['hasHeader', 'a'],
      ],
    ],
    [
      'names that are no text',
      ['setHeader', 'appendHeader', 'getHeader', 'hasHeader', 'removeHeader'].map((method) => [method, 7, 'a']),
    ],
  ];
  test.each(instances)("are Node's: %s", async (_, steps) => {
    for (const request of REQUESTS) {
      await compare(request, steps);
      await compare(request, [['setHeader', 'First', '0'], ...steps]);
    }
  });

  test('may be given as Headers', async () => {
    const given = new Headers([
      ['B', '2'],
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['a', '1'],
    ]);
    const bytes = await Promise.all(
      [node, own].map((server) =>
        server.ask(GET, (response) => response.setHeader('x', '0').setHeaders(given).end('body')),
      ),
    );
    expect(bytes[1]).toContain('\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n');
    expect(bytes[1]).toBe(bytes[0]);
  });

  test('of setValidHeader are like others, whoever keeps them', async () => {
    const bytes = await own.ask(GET, (response) => {
      setValidHeader(response, 'A', '1');
      setValidHeader(response, 'a', '2');
      expect(response.getHeaders()).toEqual({ a: '2' });
      response.appendHeader('B', 'x');
      setValidHeader(response, 'b', '3');
      setValidHeader(response, 'c', '4');
      expect(response.getHeaders()).toEqual({ a: '2', b: '3', c: '4' });
      response.end();
    });
    expect(bytes).toMatch(/^HTTP\/1\.1 200 OK\r\na: 2\r\nb: 3\r\nc: 4\r\nDate: now\r\n/);
  });

  test('of setValidHeader that are not valid are never sent', async () => {
    for (const [field, content] of [
      ['a', 'x\r\nInjected: 1'],
      ['a\r\nInjected', '1'],
    ] as const) {
      const bytes = await own.ask(GET, (response) => {
        setValidHeader(response, field, content);
        expect(() => response.writeHead(200)).toThrow(/character in header content|valid HTTP token/);
        response.destroy();
      });
      expect(bytes).toBe('');
    }
  });
});

describe('requests and responses of an Express application', () => {
  const handlers: [string, (request: Request, response: Response) => unknown][] = [
    [
      'set, get and append',
      (_, res) =>
        res
          .set({ A: '1', b: ['2', '3'] })
          .append('a', '4')
          .append('Link', '<x>')
          .send(`${String(res.get('A'))} ${String(res.get('B'))}`),
    ],
    ['vary', (_, res) => res.vary('Accept').vary('Origin, accept').end()],
    ['type', (_, res) => res.type('html').send('<p>é</p>')],
    [
      'cookie and clearCookie',
      (_, res) => res.cookie('a', 'ü', { httpOnly: true }).cookie('b', { c: 1 }).clearCookie('d').end(),
    ],
    ['links', (_, res) => res.links({ next: '/2' }).links({ last: '/9' }).end()],
    ['redirect', (_, res) => res.redirect(303, '/é')],
    ['location and status', (_, res) => res.location('/there').status(201).json({ a: 'é' })],
    ['jsonp', (_, res) => res.jsonp({ a: 1 })],
    ['sendStatus', (_, res) => res.sendStatus(418)],
    ['a status without a body', (_, res) => res.type('txt').status(204).send('none')],
    ['attachment', (_, res) => res.attachment('naïve plan.txt').send('text')],
    ['format', (_, res) => res.format({ text: () => res.send('text'), json: () => res.json({}) })],
    ['a buffer', (_, res) => res.send(Buffer.from('bytes'))],
    [
      'removeHeader',
      (_, res) => {
        res.removeHeader('X-Powered-By');
        res.send('text');
      },
    ],
    [
      'pieces',
      (_, res) => {
        res.write('é');
        res.write(Buffer.from('b'));
        res.end('c');
      },
    ],
    [
      'a file',
      (_, res) =>
        res.sendFile(fileURLToPath(import.meta.url), { lastModified: false, etag: false, cacheControl: false }),
    ],
    [
      'an error',
      () => {
        throw Object.assign(new Error('none of it'), { status: 409, headers: { 'X-A': '1' } });
      },
    ],
    ['an answer that is fresh', (_, res) => res.set('ETag', '"a"').send('text')],
    [
      'request',
      (req, res) =>
        res.json([
          req.get('Host'),
          req.header('referer'),
          req.protocol,
          req.secure,
          req.ip,
          req.ips,
          req.hostname,
          req.host,
          req.path,
          req.query,
          req.xhr,
          req.fresh,
          req.stale,
          req.subdomains,
          req.accepts(['json', 'html']),
          req.is('json'),
          req.range(100),
          req.baseUrl,
          req.originalUrl,
          req.route !== undefined,
        ]),
    ],
    [
      'each other',
      (req, res) => res.json([req.res === res, res.req === req, req.app === res.app, req.app.get('name'), res.locals]),
    ],
  ];
  const requests = [
    '/?b=1&b=2 HTTP/1.1\r\nHost: shop.example:80\r\nAccept: text/plain',
    '/ HTTP/1.1\r\nHost: x\r\nIf-None-Match: "a"\r\nReferrer: y\r\nX-Requested-With: XMLHttpRequest\r\nRange: bytes=0-5',
    '/ HTTP/1.0',
  ].flatMap((request) => ['GET', 'HEAD'].map((method) => `${method} ${request}\r\nConnection: close\r\n\r\n`));

  function createApp(handler: (request: Request, response: Response) => unknown): Express {
    const app = express();
    app.set('name', 'of the test').set('env', 'test');
    app.locals['a'] = 1;
    app.use((_, response, next) => {
      response.locals['b'] = 2;
      next();
    });
    app.get('/', (request, response) => {
      handler(request, response);
    });
    return app;
  }

  async function answers(server: Server): Promise<string[]> {
    const asked = await Asked.start(server);
    try {
      const received = [];
      for (const request of requests) received.push(await asked.ask(request));
      return received;
    } finally {
      await asked.stop();
    }
  }

  test.each(handlers)("do as Express's: %s", async (_, handler) => {
    const expected = await answers(createServer(createApp(handler)));
    expect(expected.every((answer) => /^HTTP\/1\.1 \d{3} /.test(answer))).toBe(true);
    expect(await answers(createOwnServer(createApp(handler)))).toEqual(expected);
  });

  test('have the prototypes of Express before Express sees them, and Express changes nothing', async () => {
    const app = createApp((request, response) => {
      prototypes.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
      response.end();
    });
    const prototypes: unknown[] = [];
    const instances: boolean[] = [];
    const server = createOwnServer(app);
    server.prependListener('request', (request: Request, response: Response) => {
      prototypes.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
      instances.push(request instanceof IncomingMessage && response instanceof ServerResponse);
    });
    await answers(server);
    expect(instances).toEqual(requests.map(() => true));
    expect(prototypes.length).toBe(4 * requests.length);
    for (let index = 0; index < prototypes.length; index += 2) {
      expect(prototypes[index]).toBe(app.request);
      expect(prototypes[index + 1]).toBe(app.response);
    }
  });

  test('have what is defined for all of them', async () => {
    const app = createApp((request, response) =>
      response.json([(request as { a?: string }).a, (response as { b?: string }).b]),
    );
    const server = createOwnServer(app);
    Object.defineProperty(app.request, 'a', { get: () => 'of requests' });
    Object.defineProperty(app.response, 'b', { get: () => 'of responses' });
    expect((await answers(server))[0]).toContain('["of requests","of responses"]');
  });

  test('let a middleware put itself before writeHead, as those do that compress or measure', async () => {
    const middleware = (_: Request, response: Response, next: () => void): void => {
      const writeHead = response.writeHead.bind(response) as (...parameters: unknown[]) => Response;
      response.writeHead = function (this: Response, ...parameters: unknown[]) {
        this.setHeader('X-Late', `${this.statusCode}, after ${this.getHeaderNames().join(' ')}`);
        this.removeHeader('Content-Length');
        this.appendHeader('X-Early', 'and late');
        return writeHead(...parameters);
      } as Response['writeHead'];
      next();
    };
    const handlers: ((response: Response) => unknown)[] = [
      (response) => response.set('X-Early', 'early').send('text'),
      (response) => response.end('text'),
      (response) => response.setHeader('a', '1').writeHead(201, { 'X-Early': 'given' }).end('text'),
    ];
    for (const handler of handlers) {
      const createMeasured = (): Express => {
        const app = express();
        app.use(middleware);
        app.get('/', (_, response) => void handler(response));
        return app;
      };
      const received = await answers(createOwnServer(createMeasured()));
      expect(received[0]).toMatch(/^X-Late: \d{3}, after /m);
      expect(received).toEqual(await answers(createServer(createMeasured())));
    }
  });
});
