import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { toApiError } from '../errors/error.filter.js';
import { JsonBody } from '../json/json-body.js';
import { handshakeOf } from '../server/requests/client-handshakes.js';

/** A client of platform-ws, or of platform-socket.io. */
interface Client {
  readonly readyState?: number;
  send(text: string): void;
  emit(event: string, data: unknown): void;
}

/**
 * Answers a gateway's message that fails, unless a filter of the gateway does: with the event `exception`, the Error body,
 * and `cause`, which has the event (`pattern`) and the `data` of the message, as stock Nest sends it.
 */
@Catch()
export class MessageErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(MessageErrorFilter.name);

  catch(exception: unknown, host: ArgumentsHost): void {
    const ws = host.switchToWs();
    const client = ws.getClient<Client>();
    const error = toApiError(exception);
    if (error.definition.status === 500) this.logger.error(exception, handshakeOf(client)?.context);
    const body = { ...error.body(), cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
    if (typeof client.readyState === 'number') {
      client.send(JsonBody.of({ event: 'exception', data: body }).text);
    } else {
      client.emit('exception', body);
    }
  }
}
