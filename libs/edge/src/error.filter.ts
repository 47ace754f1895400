import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Logger,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { type Observable, throwError } from 'rxjs';
import { ApiError, DeclaredErrors, RequestAbortedError, toApiError, VALIDATION_FAILED } from '#errors';
import { answerBaseFilters } from './base-filter.internals.js';
import { LimitedWarnings } from '#runtime';
import type { PlatformExpressAdapter } from './express-adapter.js';
import { servedRequestOf } from './requests/request-context.js';

/**
 * Turns everything that is thrown during a request into a response: by what a feature has declared, else by `toApiError`. Filters of
 * modules come first. An exception of Nest with a status below 400 is sent as stock Nest sends it.
 *
 * - What becomes a 500 with a fixed message is logged as an error: a person must look at it. The cause of other 5xx, of a statement that
 *   took too long, and of a value that PostgreSQL refused is logged as a warning.
 * - A RequestAbortedError gets no response. Neither does any other failure, except an ApiError, if the client has closed the connection
 *   while its body was arriving: multer and other readers then throw errors of their own.
 *
 * What other transports throw is theirs, and what code calls by Nest's ExternalContextCreator is that code's: it is thrown again.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter, OnModuleInit {
  private readonly logger = new Logger(ErrorFilter.name);
  private readonly warnings = new LimitedWarnings(this.logger);
  private readonly refused = new LimitedWarnings(this.logger);

  constructor(
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
    @Optional() private readonly declared?: DeclaredErrors,
  ) {}

  onModuleInit(): void {
    answerBaseFilters(this.adapterHost.httpAdapter, this);
  }

  catch(exception: unknown, host: ArgumentsHost): Observable<never> | undefined {
    if (servedRequestOf(host) !== undefined) return void this.answer(exception, host);
    if (host.getType() === 'rpc') return throwError(() => exception);
    throw exception;
  }

  private answer(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const response = http.getResponse<Response>();
    const request = http.getRequest<Request>();
    const isCutOff = request.destroyed && !request.complete && !(exception instanceof ApiError);
    if (isCutOff || exception instanceof RequestAbortedError) {
      response.destroy();
      return;
    }
    if (exception instanceof HttpException && exception.getStatus() >= 200 && exception.getStatus() < 400) {
      // Some handlers throw to end early or to redirect.
      const [statusCode, message] = [exception.getStatus(), exception.getResponse()];
      const body = typeof message === 'object' ? message : { statusCode, message };
      this.adapterHost.httpAdapter.reply(response, body, statusCode);
      return;
    }
    const declared = this.declared?.errorOf(exception);
    if (declared === undefined) this.send(exception, undefined, request, response);
    else void declared.then((error) => this.send(exception, error, request, response));
  }

  private send(exception: unknown, declared: ApiError | undefined, request: Request, response: Response): void {
    const { context } = request;
    const error = declared ?? toApiError(exception, request);
    const { status } = error.definition;
    if (status === 500 && error.unavailableCause === undefined) {
      this.logger.error(exception, context);
    } else if (status >= 500 && error.cause instanceof Error) {
      this.warnings.warn(`Returned ${status}: ${error.cause.message}`, error.cause, context);
    } else if (declared === undefined && error !== exception && error.definition === VALIDATION_FAILED) {
      const { code } = exception as { code: string };
      this.refused.warn(
        `PostgreSQL refused a value in ${context.operation} (${code}): of the request, or of the module`,
        context,
      );
    }
    this.adapterHost.httpAdapter.sendError(response, error);
  }
}
