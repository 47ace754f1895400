// Starts Swagger UI on /docs, with the components of this service. The browser gets these files unchanged.
/* global location, SwaggerUIBundle, URL */
import { keepHeaderFields, referencePlugin } from './reference.js';

SwaggerUIBundle({
  url: new URL('openapi.json', location.href).href,
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
  layout: 'ReferenceLayout',
  plugins: [referencePlugin],
  requestInterceptor: keepHeaderFields,
});
