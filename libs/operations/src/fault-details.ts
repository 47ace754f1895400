import { SetMetadata } from '@nestjs/common';

export const FAULT_DETAILS_METADATA = 'platform:fault-details';

/**
 * Sends the faults of an input as `details` of the Error body, for forms: each with `property`, `rule`, `message` and the `context`
 * of its rule. Without it they are only on the exception, `ApiError.faults`. At a handler, or at a controller for all of its
 * handlers; the document says so.
 *
 * @example `@Post() @FaultDetails() createOrder(@Body() order: NewOrder): Promise<Order>`
 */
export const FaultDetails = (): ClassDecorator & MethodDecorator => SetMetadata(FAULT_DETAILS_METADATA, true);
