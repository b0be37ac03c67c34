import { MemoryCluster } from '../testing/memory-cluster.js';
import type { Connection } from '../cluster-client.js';
import { expect } from 'chai';
import { VERSION } from '../../process/version.js';
import { readCliCommandLine } from '../command-line.js';
import { createTerminal } from '../terminal.js';

describe('kubectl holdfast version', () => {
  for (const [given, printed] of [
    ['version', `kubectl holdfast: ${VERSION}\n`],
    ['version -o json', `${JSON.stringify({ client: VERSION }, undefined, 2)}\n`],
  ] as const) {
    it(`names the version of the program in ${given}, and then fails, if the cluster does not answer`, async () => {
      let text = '';
      const terminal = createTerminal(
        { write: (chunk) => Boolean((text += String(chunk))) },
        process.stderr,
        undefined,
      );
      const connect = () => Promise.reject(new Error('no route to host'));
      const error = await readCliCommandLine(given.split(' '))!
        .run({ terminal, connect })
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(Error).with.property('message', 'no route to host');
      expect(text).to.equal(printed);
    });
  }

  it('says which processes it could not read, and not that there are none', async () => {
    const cluster = new MemoryCluster();
    cluster.refused.add('deployments');
    const printed: string[] = [];
    const printTo = { write: (chunk: unknown) => printed.push(String(chunk)) > 0 };
    const connect = <T>(run: (connection: Connection) => Promise<T>) =>
      run({ client: cluster.client, home: 'lab' } as unknown as Connection);
    const terminal = createTerminal(printTo, printTo, undefined);
    await readCliCommandLine(['version', '-o', 'json'])!.run({ terminal, connect });
    expect(printed[0]).to.include('may not list deployments.apps in the whole cluster');
    expect(JSON.parse(printed.slice(1).join(''))).to.deep.equal({ client: VERSION });
  });
});
