import { type INestApplication, type Type, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import { URI_VERSIONS } from '../../libs/service/src/set-up.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { type HttpAnswer, type HttpCall, HttpClient } from '../support/http-client.js';
import type { Difference } from './differences.js';

/** A request, and the intended difference between the responses of the service and of stock Nest, if there is one. */
export interface Row {
  readonly title: string;
  readonly path: string;
  /** GET by default. */
  readonly method?: string;
  readonly send?: HttpCall;
  /** The status of stock Nest's response, so that two equal but wrong responses are noticed. */
  readonly status: number;
  /** A text that both bodies must contain. */
  readonly contains?: string;
  /** The handler itself writes the 4xx or 5xx, so its body is no Error body. */
  readonly isNoErrorBody?: boolean;
  /** An intended difference: the service's response. Status and media type are stock Nest's unless given. */
  readonly meant?: {
    readonly difference: Difference;
    readonly status?: number;
    readonly type?: string;
    readonly body: unknown;
  };
}

/** Runs the same modules on stock Nest 12 with its ValidationPipe, and on the service. */
export class Pair {
  private constructor(
    readonly ours: TestApp,
    private readonly stock: INestApplication,
    private readonly stockClient: HttpClient,
  ) {}

  static async start(modules: Type[]): Promise<Pair> {
    class StockModule {}
    const stock = await NestFactory.create({ module: StockModule, imports: modules }, new ExpressAdapter(), {
      logger: false,
      rawBody: true,
    });
    stock.useGlobalPipes(new ValidationPipe({ transform: true }));
    stock.enableVersioning(URI_VERSIONS);
    await stock.listen(0, '127.0.0.1');
    const { port } = (stock.getHttpServer() as Server).address() as AddressInfo;
    const ours = await createTestApp({ features: modules });
    return new Pair(ours, stock, new HttpClient(`http://127.0.0.1:${port}`, ours.apiKey));
  }

  async close(): Promise<void> {
    await this.stock.close();
    await this.ours.close();
  }

  /** Sends the request of a row to both, and compares the responses. */
  async compare({ method = 'GET', path, send, status, contains = '', isNoErrorBody, meant }: Row): Promise<void> {
    const stock = await this.stockClient.send(method, path, send);
    const ours = await this.ours.client.send(method, path, send);
    expect([stock.status, ours.status]).toEqual([status, meant?.status ?? status]);
    if (meant !== undefined) {
      expect(bodyOf(ours)).toEqual(meant.body);
      if (meant.type !== undefined) expect(ours.headers['content-type']).toBe(meant.type);
      // A declared difference must exist.
      const seen = ({ status, headers }: HttpAnswer, body: unknown): unknown => [status, headers['content-type'], body];
      expect(seen(ours, bodyOf(ours))).not.toEqual(seen(stock, bodyOf(stock)));
      return;
    }
    expect(fieldsOf(ours)).toEqual({ ...FIELDS_OF_STATUS[status], ...fieldsOf(stock) });
    expect(ours.text).toContain(contains);
    if (status < 400 || isNoErrorBody) {
      expect(bodyOf(ours)).toEqual(bodyOf(stock));
    } else {
      expect(ours.json).toEqual(errorBodyOf(stock));
    }
  }
}

/** Header fields that differ in every response. Comments here name the row of the table in docs/extending.md. */
const AMBIENT = [
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-powered-by',
  // 'header fields of every response'
  'ratelimit',
  'ratelimit-policy',
  'x-content-type-options',
  'x-request-id',
];
/** 'header fields of every response': of responses for which the handler sets none. */
const FIELDS_OF_STATUS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': 'Bearer realm="petstore"' },
  429: { 'retry-after': '1' },
  503: { 'retry-after': '1' },
};
const DEFAULT_CACHING = ['no-store', 'private, no-cache'];

/** The header fields of a response that must be the same on stock Nest and on the service. */
function fieldsOf({ headers }: HttpAnswer): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...headers };
  for (const name of AMBIENT) delete fields[name];
  // 'header fields of every response'
  if (DEFAULT_CACHING.includes(String(fields['cache-control']))) delete fields['cache-control'];
  if (fields['vary'] === 'Authorization') delete fields['vary'];
  // 'entity tags': those that a handler sets are strong in these tests.
  if (String(fields['etag']).startsWith('W/')) delete fields['etag'];
  // 'media types'
  const isJson = /^application\/([\w.-]+\+)?json/.test(String(fields['content-type']));
  if (isJson) fields['content-type'] = String(fields['content-type']).replace('; charset=utf-8', '');
  return fields;
}

function bodyOf({ text, headers }: HttpAnswer): unknown {
  return /^application\/([\w.]+\+)?json/.test(headers['content-type'] ?? '') && text !== '' ? JSON.parse(text) : text;
}

/** 'error body': the body that the service makes of an error of stock Nest. */
function errorBodyOf(stock: HttpAnswer): unknown {
  const { statusCode: _, message, error, ...rest } = JSON.parse(stock.text) as Record<string, unknown>;
  const isUsual =
    error === undefined ||
    (typeof error === 'string' && error.toLowerCase() === STATUS_CODES[stock.status]?.toLowerCase());
  const text = typeof message === 'string' ? message : Array.isArray(message) ? message.join('; ') : undefined;
  const details = { ...rest, ...(isUsual ? {} : { error }), ...(text === undefined && message ? { message } : {}) };
  return {
    code: expect.stringMatching(/^[a-z_]+$/) as string,
    message: stock.status >= 500 || text === undefined ? (expect.any(String) as string) : text,
    status: stock.status,
    ...(Object.keys(details).length > 0 ? { details } : {}),
    ...(Array.isArray(message) ? { details: message as unknown[] } : {}),
  };
}
