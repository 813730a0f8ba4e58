/** A screen that fails takes neither the frame nor the connection with it. */
import { Component, type ReactNode } from 'react';
import { Button } from '../parts/Button';

interface Props {
  /** A new place is a new try. */
  place: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error: Error | null; place: string }> {
  override state = { error: null as Error | null, place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: { place: string }) {
    return props.place === state.place ? null : { place: props.place, error: null };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    // A file of this page is gone after the server was replaced by a newer one.
    const old = /dynamically imported|importing a module|preload/i.test(error.message);
    return (
      <div className="alone">
        <h1>{old ? 'The server has a newer page' : 'This view has failed'}</h1>
        <p>{old ? 'Load it to go on.' : error.message}</p>
        <p><Button look="primary" onClick={() => location.reload()}>Load the page again</Button></p>
      </div>
    );
  }
}
