import { Logger, StreamableFile } from '@nestjs/common';
import type { Response } from 'express';
import { httpError } from '../errors/http-exception.js';

/** The source of Nest's default error handler of streams, which answers 400 as text. Each file has a function of its own. */
const NEST_STREAM_ERROR = String(new StreamableFile(Buffer.alloc(0)).errorHandler);

/**
 * Lets the filter answer when a stream fails before its first byte: 404 for a missing file, else 500. An error handler
 * that a module has set stays.
 */
export function withErrorAnswer(file: StreamableFile): StreamableFile {
  const { errorHandler } = file;
  if (String(errorHandler) !== NEST_STREAM_ERROR) return file;
  return file.setErrorHandler((error, response) => {
    const { req: request, destroyed, headersSent } = response as Response;
    if (destroyed || headersSent) {
      errorHandler(error, response);
      return;
    }
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isMissing) streamLog.warn('The file of an answer is not there.', error, request.context);
    request.next?.(isMissing ? httpError(404, 'The file does not exist.', { cause: error }) : error);
  });
}

const streamLog = new Logger(StreamableFile.name);
