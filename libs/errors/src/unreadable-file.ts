import type { StreamableFile } from '@nestjs/common';
import { ApiError } from './api-error.js';
import { BAD_REQUEST } from './error-catalogue.js';

/** Sends the Error body where Nest would send a text, of a file that cannot be read. A handler of the module that responds stays. */
export function withErrorBody(file: StreamableFile, sendError: (error: ApiError) => void): StreamableFile {
  const { errorHandler } = file;
  return file.setErrorHandler((error, response) => {
    const { send } = response;
    response.send = (text) => {
      response.send = send;
      if (response.statusCode === 400 && text === 'Bad Request') sendError(new ApiError(BAD_REQUEST, text));
      else response.send(text);
    };
    errorHandler(error, response);
  });
}
