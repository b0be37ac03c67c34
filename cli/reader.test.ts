import { expect } from 'chai';
import { StatusError, TransportError } from '../kube/errors.js';
import { ADDRESS_POOLS, PODS } from '../kube/resources.js';
import { apiError } from '../test/api-errors.js';
import { CommandError } from './exit-code.js';
import {
  PermittedReader,
  type Unread,
  listAsAdministrator,
  readList,
  readObject,
  required,
  valueOr,
} from './reader.js';

const MESSAGE = 'pools is forbidden: User "eve" cannot get resource "addresspools" in API group "ipam.holdfast.dev"';
const ANSWERS: readonly [string, StatusError, Unread['kind'], string][] = [
  [
    'an object that does not exist',
    apiError(404, 'NotFound', 'no', 'blue'),
    'absent',
    'AddressPool blue does not exist',
  ],
  [
    'a kind that the API server does not serve',
    new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' }),
    'unserved',
    'the API server does not serve addresspools.ipam.holdfast.dev',
  ],
  [
    'a right that the user lacks',
    apiError(403, 'Forbidden', `${MESSAGE} at the cluster scope`, 'blue'),
    'forbidden',
    'user "eve" may not get addresspools.ipam.holdfast.dev in the whole cluster',
  ],
  ['an API server that fails', apiError(500, 'InternalError', 'etcd is away', ''), 'failed', 'etcd is away'],
];

function failing(error: Error) {
  const fail = () => Promise.reject(error);
  return { get: fail, list: fail, listAs: fail };
}

describe('a read of a command', () => {
  for (const [title, error, kind, words] of ANSWERS) {
    it(`names ${title}`, async () => {
      const read = await readObject(failing(error), ADDRESS_POOLS, { name: 'blue' });
      expect(read).to.include({ kind, error });
      expect((read as Unread).why).to.include(words);
      expect(valueOr(read, { [kind]: 'instead' })).to.equal('instead');
      expect(() => valueOr(read, {})).to.throw(error.message);
      expect(() => required(read, 'install it')).to.throw(
        kind === 'unserved' ? CommandError : StatusError,
        kind === 'unserved' ? `${words}: install it` : error.message,
      );
    });
  }

  for (const error of [apiError(401, 'Unauthorized', 'no', ''), new TransportError('unsent', 'refused')]) {
    it(`ends with ${error.message}, which is no answer about the object`, async () => {
      const thrown: unknown = await readList(failing(error), PODS).catch((caught: unknown) => caught);
      expect(thrown).to.equal(error);
    });
  }

  it('notes each right that the user lacks once, and takes a kind that is not served as empty', async () => {
    const [, [, unserved], [, forbidden]] = ANSWERS as [unknown, [string, StatusError], [string, StatusError]];
    const reader = new PermittedReader(failing(forbidden));
    expect([await reader.list(PODS), await reader.list(ADDRESS_POOLS)]).to.deep.equal([undefined, undefined]);
    expect(reader.refused).to.have.length(1);
    expect(await new PermittedReader(failing(unserved)).list(ADDRESS_POOLS)).to.deep.equal([]);
  });

  it('says that an administrator has to run the command if the user may not list all objects', async () => {
    const [, , [, forbidden]] = ANSWERS as [unknown, unknown, [string, StatusError]];
    const thrown: unknown = await listAsAdministrator(failing(forbidden), PODS, (pod) => [pod]).catch(
      (caught: unknown) => caught,
    );
    expect(thrown).to.be.instanceOf(CommandError);
    expect((thrown as CommandError).message).to.match(
      /^you may not list pods in all namespaces: run .* administrator$/,
    );
  });
});
