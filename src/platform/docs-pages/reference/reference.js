// The plugin of Swagger UI for /docs. Swagger UI loads the document, keeps the state and sends the requests; the components
// below show an operation on about two screens, with labels, and without changing a digit.
/* global fetch, location, performance, URL */
import { checkKey, storedKey, storeKey } from './api-key.js';
import {
  errorKey,
  exampleOf,
  isError,
  membersOf,
  nameOf,
  resolve,
  responsesOf,
  sharedBy,
  typeInWords,
} from './document.js';
import { answerComponents } from './live-answer.js';

/** Where the page sends its requests: the server that shows it, under the address in the browser. */
function thisServer({ servers }) {
  const isVersioned = servers[0].url.endsWith('/v1');
  return new URL(isVersioned ? 'v1' : '.', location.href).href.replace(/\/$/, '');
}

export const referencePlugin = ({ React, Im }) => {
  const h = React.createElement;
  const { Answer, Code } = answerComponents({ React });
  const plain = (value) => value?.toJS?.() ?? value;

  /** A text of the document, with what stands between backticks as code. */
  function prose(text = '') {
    return text.split('`').map((part, index) => (index % 2 === 1 ? h('code', { key: index }, part) : part));
  }

  function Members({ api, schema }) {
    const members = membersOf(api, schema);
    if (members.length === 0) return null;
    return h(
      'dl',
      { className: 'members' },
      members.map(({ name, type, description, isRequired }) =>
        h(
          React.Fragment,
          { key: name },
          h('dt', null, h('code', null, name), ' ', h('span', null, type, isRequired ? ', required' : '')),
          h('dd', null, prose(description)),
        ),
      ),
    );
  }

  function Fields({ headers }) {
    const entries = Object.entries(headers);
    if (entries.length === 0) return null;
    return h(
      'dl',
      { className: 'members' },
      entries.map(([name, description]) =>
        h(React.Fragment, { key: name }, h('dt', null, h('code', null, name)), h('dd', null, prose(description))),
      ),
    );
  }

  function Errors({ errors }) {
    return h(
      'ul',
      { className: 'errors' },
      errors.map(({ status, codes, description }) =>
        h(
          'li',
          { key: errorKey({ status, codes }) },
          h('strong', null, status === 'default' ? 'Others' : status),
          ' ',
          codes.length === 0 ? prose(description) : null,
          codes.map((code, index) => [
            index > 0 ? ', ' : '',
            h('a', { key: code, href: `docs/errors#${code}` }, h('code', null, code)),
          ]),
        ),
      ),
    );
  }

  /** A parameter: its label and type, a field for its value, and what it means. */
  function Parameter({ api, id, parameter, value, onChange, onInvalid }) {
    const { name, required, description, schema: reference } = plain(parameter);
    const schema = resolve(api, reference) ?? {};
    const example = plain(parameter).example ?? schema.examples?.[0];
    const field = {
      id,
      value: value ?? '',
      required: required === true,
      'aria-describedby': `${id}-description`,
      onChange: ({ target }) => onChange(target.value),
      onInvalid,
    };
    return h(
      'div',
      { className: 'parameter' },
      h(
        'label',
        { htmlFor: id },
        h('code', null, name),
        ' ',
        h('span', null, `${plain(parameter).in}, ${typeInWords(api, reference)}${required ? ', required' : ''}`),
      ),
      schema.enum
        ? h(
            'select',
            field,
            h('option', { value: '' }, required ? 'Choose one' : '(none)'),
            schema.enum.map((option) => h('option', { key: option, value: option }, option)),
          )
        : h('input', {
            ...field,
            type: 'text',
            autoComplete: 'off',
            spellCheck: false,
            placeholder: example === undefined ? '' : `such as ${example}`,
          }),
      h('p', { id: `${id}-description` }, prose(description)),
    );
  }

  /** The form of a request, and its answer below the button. */
  function Request({ api, id, described, parameters, operation, response, ...system }) {
    const { specSelectors, specActions, oas3Actions } = system;
    const { path, method } = operation.toObject();
    const pathMethod = [path, method];
    const media = Object.keys(resolve(api, described.requestBody)?.content ?? {})[0];
    const schema = media && resolve(api, described.requestBody).content[media].schema;
    const [body, setBody] = React.useState(() => schema && JSON.stringify(exampleOf(api, schema), null, 2));
    const [isSending, setSending] = React.useState(false);
    const execute = async (event) => {
      event.preventDefault();
      // Repeated submits are ignored instead of disabling the button, which would lose the focus.
      if (isSending) return;
      setSending(true);
      specActions.clearResponse(path, method);
      if (media) {
        oas3Actions.setRequestContentType({ value: media, pathMethod });
        oas3Actions.setRequestBodyValue({ value: body, pathMethod });
      }
      await specActions.execute({ operation: operation.get('op'), path, method });
      setSending(false);
    };
    const request = plain(specSelectors.mutatedRequestFor(path, method) ?? specSelectors.requestFor(path, method));
    return h(
      'form',
      { onSubmit: execute },
      h('h4', null, 'Request'),
      parameters.toArray().map((parameter) =>
        h(Parameter, {
          key: `${parameter.get('in')}-${parameter.get('name')}`,
          api,
          id: `${id}-${parameter.get('name')}`,
          parameter,
          value: specSelectors.parameterWithMetaByIdentity(pathMethod, parameter).get('value'),
          // The browser says what is missing; an answer to another request beside that would mislead.
          onInvalid: () => specActions.clearResponse(path, method),
          onChange: (value) =>
            specActions.changeParamByIdentity(pathMethod, parameter, value === '' ? null : value, false),
        }),
      ),
      media &&
        h(
          'div',
          { className: 'request-body' },
          h('label', { htmlFor: `${id}-body` }, 'Body ', h('span', null, `${media}, ${nameOf(schema) ?? ''}`)),
          h('textarea', {
            id: `${id}-body`,
            rows: Math.min(12, body.split('\n').length + 1),
            value: body,
            spellCheck: false,
            onChange: ({ target }) => setBody(target.value),
          }),
          h(Members, { api, schema }),
        ),
      h('button', { type: 'submit', className: 'execute', 'aria-disabled': isSending }, 'Execute'),
      h(
        'div',
        { className: 'answer', 'aria-live': 'polite' },
        isSending && h('p', null, 'Sending …'),
        !isSending && response && h(Answer, { response: plain(response), request }),
      ),
    );
  }

  function Operation(props) {
    const { operation, specSelectors, layoutActions, toggleShown } = props;
    const { path, method, summary, deprecated, operationId, tag, isShown } = operation.toObject();
    const api = React.useMemo(() => plain(specSelectors.specJson()), [specSelectors.specJson()]);
    const described = api.paths[path][method];
    const id = `operations-${tag}-${operationId}`;
    return h(
      'article',
      {
        id,
        className: deprecated ? 'operation deprecated' : 'operation',
        // Lets the address `#/<tag>/<operationId>` scroll here.
        ref: (element) => element && layoutActions.readyToScroll(['operations', tag, operationId], element),
      },
      h(
        'h3',
        null,
        h(
          'button',
          { type: 'button', 'aria-expanded': isShown, 'aria-controls': `${id}-content`, onClick: toggleShown },
          h('span', { className: `method ${method}` }, method.toUpperCase()),
          h('span', { className: 'path' }, path),
          h('span', { className: 'summary' }, summary),
          deprecated && h('span', { className: 'badge' }, 'deprecated'),
        ),
      ),
      h('div', { id: `${id}-content`, hidden: !isShown }, isShown && content()),
    );

    function content() {
      const resolved = operation.get('op');
      if (!resolved?.size) return h('p', null, 'Loading …');
      const Markdown = props.getComponent('Markdown', true);
      const shared = sharedBy(api);
      const responses = responsesOf(api, described);
      const sharedErrors = new Set(shared.errors.map(errorKey));
      const ownErrors = responses.filter(isError).filter((error) => !sharedErrors.has(errorKey(error)));
      return h(
        React.Fragment,
        null,
        h(Markdown, { source: described.description }),
        deprecated && h('p', null, h('a', { href: `docs/deprecations#${operationId}` }, 'About this deprecation')),
        h(Request, { ...props, api, id, described, parameters: resolved.get('parameters') ?? Im.List() }),
        h('h4', null, 'Responses'),
        responses
          .filter((answer) => !isError(answer))
          .map(({ status, description, schema, headers }) => {
            const own = Object.entries(headers).filter(([name]) => !(name in shared.headers));
            const type = nameOf(schema) ?? (schema ? typeInWords(api, schema) : '');
            return h(
              'details',
              { key: status, open: status.startsWith('2') },
              h(
                'summary',
                null,
                h('strong', null, status),
                ' ',
                prose(description),
                ' ',
                type && h('code', null, type),
              ),
              schema && h(Code, { title: 'Example', text: JSON.stringify(exampleOf(api, schema), null, 2) }),
              schema && h(Members, { api, schema }),
              own.length > 0 && h('h5', null, 'Header fields'),
              h(Fields, { headers: Object.fromEntries(own) }),
            );
          }),
        h(
          'div',
          { className: 'error-list' },
          h('h5', null, 'Errors'),
          h(Errors, { errors: ownErrors }),
          h('p', null, 'Also ', h('a', { href: '#every-answer' }, 'what every operation may answer'), '.'),
        ),
      );
    }
  }

  function OperationTag({ tag, tagObj, getComponent, children }) {
    const Markdown = getComponent('Markdown', true);
    return h(
      'section',
      { id: `operations-tag-${tag}` },
      h('h2', null, tag),
      h(Markdown, { source: tagObj.getIn(['tagDetails', 'description']) }),
      children,
    );
  }

  /** The API key: asked for once, checked by a request, and kept no longer than wanted. */
  function KeyForm({ api, authActions, authSelectors }) {
    const stored = React.useMemo(storedKey, []);
    const [key, setKey] = React.useState(stored.key);
    const [isLasting, setLasting] = React.useState(stored.isLasting);
    const [isVisible, setVisible] = React.useState(false);
    const [state, setState] = React.useState({ says: 'No key is set: requests are sent without one.' });
    const [name, scheme] =
      Object.entries(api.components?.securitySchemes ?? {}).find(([, { type }]) => type === 'http') ?? [];

    const use = async (key, isLasting) => {
      if (authSelectors.authorized().has(name)) authActions.logout([name]);
      storeKey('', false);
      if (key === '') return setState({ says: 'No key is set: requests are sent without one.' });
      setState({ says: 'Checking the key …' });
      const checked = await checkKey(api, thisServer(api), key);
      setState(checked);
      if (checked.isAccepted === false) return;
      storeKey(key, isLasting);
      authActions.authorize({ [name]: { name, schema: Im.fromJS(scheme), value: key } });
    };
    React.useEffect(() => void (stored.key !== '' && use(stored.key, stored.isLasting)), []);

    if (name === undefined) return null;
    return h(
      'form',
      {
        className: 'api-key',
        'aria-labelledby': 'api-key-title',
        onSubmit: (event) => (event.preventDefault(), use(key.trim(), isLasting)),
      },
      h('h2', { id: 'api-key-title' }, 'API key'),
      h('label', { htmlFor: 'api-key' }, 'Your API key'),
      h(
        'div',
        { className: 'key-row' },
        h('input', {
          id: 'api-key',
          type: isVisible ? 'text' : 'password',
          autoComplete: 'off',
          spellCheck: false,
          value: key,
          'aria-describedby': 'api-key-state',
          onChange: ({ target }) => setKey(target.value),
        }),
        h(
          'button',
          { type: 'button', 'aria-pressed': isVisible, onClick: () => setVisible(!isVisible) },
          isVisible ? 'Hide' : 'Show',
        ),
        h('button', { type: 'submit' }, 'Use'),
        h('button', { type: 'button', onClick: () => (setKey(''), setLasting(false), use('', false)) }, 'Forget'),
      ),
      h(
        'label',
        { className: 'choice' },
        h('input', { type: 'checkbox', checked: isLasting, onChange: ({ target }) => setLasting(target.checked) }),
        ' Keep it in this browser. Otherwise it is forgotten when you close the tab.',
      ),
      h(
        'p',
        {
          id: 'api-key-state',
          role: 'status',
          className: state.isAccepted === undefined ? '' : state.isAccepted ? 'success' : 'failure',
        },
        state.says,
      ),
    );
  }

  function ReferenceLayout({ specSelectors, authActions, authSelectors, getComponent }) {
    const Markdown = getComponent('Markdown', true);
    if (specSelectors.loadingStatus() === 'failed') return h('p', null, 'The OpenAPI document could not be loaded.');
    if (!specSelectors.specStr()) return h('p', null, 'Loading …');
    const api = plain(specSelectors.specJson());
    const Operations = getComponent('operations', true);
    const { title, version, description, license, contact } = api.info;
    const shared = sharedBy(api);
    return h(
      React.Fragment,
      null,
      h('h1', null, title, ' ', h('small', null, version)),
      h(Markdown, { source: description }),
      h(
        'p',
        null,
        h('a', { href: 'docs/guide' }, 'The guide'),
        ' begins with the first call. Programs read ',
        h('a', { href: 'openapi.json' }, 'openapi.json'),
        '.',
        license && ` Licence: ${license.name}.`,
        contact?.url && [' Contact: ', h('a', { key: 'contact', href: contact.url }, contact.name ?? contact.url), '.'],
      ),
      h('p', null, 'Requests from this page go to ', h('code', null, thisServer(api)), ', the server that shows it.'),
      h(KeyForm, { api, authActions, authSelectors }),
      h(Operations),
      h(
        'section',
        { id: 'every-answer' },
        h('h2', null, 'What every operation may answer'),
        h('h3', null, 'Header fields'),
        h(Fields, { headers: shared.headers }),
        h('h3', null, 'Errors'),
        h(Errors, { errors: shared.errors }),
        h(Members, { api, schema: { $ref: '#/components/schemas/Error' } }),
      ),
    );
  }

  return {
    components: { ReferenceLayout },
    // Wrapped, so that they also replace what Swagger UI's own plugins have wrapped.
    wrapComponents: { operation: () => Operation, OperationTag: () => OperationTag },
    statePlugins: {
      spec: {
        wrapActions: {
          updateJsonSpec: (update) => (api) =>
            update({ ...api, servers: [{ url: thisServer(api) }], tags: tagsInUse(api) }),
        },
      },
    },
  };
};

/** The tags of the document that have operations. A section without content helps nobody. */
function tagsInUse(api) {
  const used = new Set(
    Object.values(api.paths ?? {}).flatMap((item) => Object.values(item).flatMap(({ tags = [] }) => tags)),
  );
  return (api.tags ?? []).filter(({ name }) => used.has(name));
}

/**
 * For `requestInterceptor`: keeps the header fields of the answer as they were sent, and measures the time. Swagger UI would
 * take commas apart and put them together in another way.
 */
export function keepHeaderFields(request) {
  const { responseInterceptor } = request;
  let seen = {};
  // The path of a further version has a fragment, behind which the query would not be sent.
  request.url = request.url.replace(/#[^?]*/, '');
  request.userFetch = async (...call) => {
    const start = performance.now();
    const answer = await fetch(...call);
    seen = { fields: [...answer.headers], duration: Math.round(performance.now() - start) };
    return answer;
  };
  request.responseInterceptor = async (response) => ({
    ...((await responseInterceptor?.(response)) ?? response),
    ...seen,
  });
  return request;
}
