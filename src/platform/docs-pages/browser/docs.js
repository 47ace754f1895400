// Starts Swagger UI on /docs. The browser gets this file unchanged.
/* global document, location, matchMedia, SwaggerUIBundle, URL */
(() => {
  'use strict';

  const thisServer = new URL('v1', location.href).href;

  /** Puts the server that serves this page first, under the address in the browser: "Try it out" sends requests there. */
  const thisServerFirst = {
    statePlugins: {
      spec: {
        wrapActions: {
          updateJsonSpec: (update) => (document) => {
            const others = (document.servers ?? []).filter(({ url }) => url !== thisServer);
            return update({ ...document, servers: [{ url: thisServer, description: 'This server' }, ...others] });
          },
        },
      },
    },
  };

  /** Shows JSON bodies with their exact digits. Swagger UI would parse them, and so round 64-bit integers. */
  const exactNumbers = ({ React }) => ({
    wrapComponents: {
      responseBody: (Original) => (props) => {
        const { content, contentType, getComponent } = props;
        if (typeof content !== 'string' || !/json/i.test(contentType)) {
          return React.createElement(Original, props);
        }
        const options = { language: 'json', downloadable: true, fileName: 'response.json', canCopy: true };
        return React.createElement(
          'div',
          null,
          React.createElement('h5', null, 'Response body'),
          React.createElement(getComponent('HighlightCode', true), options, indentJson(content)),
        );
      },
    },
  });

  /** Indents JSON text without parsing it: strings and numbers stay as they are. */
  function indentJson(text) {
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
    let depth = 0;
    let result = '';
    tokens.forEach((token, index) => {
      const next = tokens[index + 1];
      if (token === '{' || token === '[') {
        const isEmpty = next === '}' || next === ']';
        depth += 1;
        result += isEmpty ? token : `${token}\n${'  '.repeat(depth)}`;
      } else if (token === '}' || token === ']') {
        depth -= 1;
        const isEmpty = tokens[index - 1] === '{' || tokens[index - 1] === '[';
        result += isEmpty ? token : `\n${'  '.repeat(depth)}${token}`;
      } else if (token === ',') {
        result += `,\n${'  '.repeat(depth)}`;
      } else {
        result += token === ':' ? ': ' : token;
      }
    });
    return result;
  }

  const darkness = matchMedia('(prefers-color-scheme: dark)');
  const followDarkness = () => document.documentElement.classList.toggle('dark-mode', darkness.matches);
  darkness.addEventListener('change', followDarkness);
  followDarkness();

  SwaggerUIBundle({
    url: new URL('openapi.json', location.href).href,
    dom_id: '#swagger-ui',
    deepLinking: true,
    displayRequestDuration: true,
    persistAuthorization: true,
    showCommonExtensions: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    plugins: [thisServerFirst, exactNumbers],
  });
})();
